//! Alternate screen of the terminal, for pictures of the fleet.

use super::picture::Size;
use std::io::{self, Write as _};

const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_REST: &str = "\u{1b}[J";

/// Assumed size of a terminal that does not report its size.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// Alternate screen of the terminal. Dropping this value restores the normal screen.
pub(super) struct Screen(());

impl Screen {
    /// Switches to an empty alternate screen without a cursor.
    pub(super) fn open() -> io::Result<Self> {
        let screen = Self(());
        write(ENTER)?;
        Ok(screen)
    }

    /// Draws a picture over the previous one.
    pub(super) fn show(&self, lines: &[String]) -> io::Result<()> {
        let body = lines.join(&format!("{CLEAR_LINE}\r\n"));
        // Write the whole picture at once, so that a partial picture never shows.
        write(&format!("{HOME}{body}{CLEAR_LINE}{CLEAR_REST}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Writing fails if the terminal is closed. A closed terminal does not need the normal screen.
        let _ = write(LEAVE);
    }
}

pub(super) fn size() -> Size {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
        }
        _ => USUAL,
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

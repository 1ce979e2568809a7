//! The terminal itself: a second screen that pictures are drawn on, and the way back.

use super::picture::Size;
use std::io::{self, Write as _};

const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_REST: &str = "\u{1b}[J";

/// What a terminal is taken to be that does not tell.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// The second screen; the first one comes back when this is dropped.
pub(super) struct Screen(());

impl Screen {
    /// Shows it, empty and without a cursor.
    ///
    /// # Errors
    /// Where standard output is closed.
    pub(super) fn open() -> io::Result<Self> {
        let screen = Self(());
        write(ENTER)?;
        Ok(screen)
    }

    /// Draws a picture over the last one.
    ///
    /// # Errors
    /// Where standard output is closed.
    pub(super) fn show(&self, lines: &[String]) -> io::Result<()> {
        let body = lines.join(&format!("{CLEAR_LINE}\r\n"));
        // In one piece, so that no half of it is ever seen.
        write(&format!("{HOME}{body}{CLEAR_LINE}{CLEAR_REST}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no more.
        let _ = write(LEAVE);
    }
}

/// The size of the terminal.
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

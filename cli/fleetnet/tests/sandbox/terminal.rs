//! Test of the picture on a pseudoterminal.

use super::{Limit, pid, sandbox};
use rustix::process::{Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

/// Runs a command on a pseudoterminal of this size, which is not known if it is zero. Interrupts the command when its
/// output contains `until`. Returns its exit code, and everything that was written to the terminal.
pub(super) fn recorded(mut command: Command, [columns, rows]: [u16; 2], until: Option<&str>) -> (Option<i32>, String) {
    let mut keyboard = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    tcsetwinsize(&keyboard, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
    let screen = File::options().read(true).write(true).open(name).unwrap();
    let mut child = command.env("TERM", "xterm").stdout(screen).stderr(Stdio::null()).spawn().unwrap();
    let limit = Limit::of(&child);
    // The command object also has the terminal open. Without the drop, the terminal would stay open after the process
    // has ended.
    drop(command);
    let (mut written, mut piece, mut is_interrupted) = (Vec::new(), [0; 4096], false);
    // A read fails when the last process that had the terminal open has ended.
    while let Ok(bytes @ 1..) = keyboard.read(&mut piece) {
        written.extend_from_slice(&piece[..bytes]);
        if !is_interrupted && until.is_some_and(|until| String::from_utf8_lossy(&written).contains(until)) {
            kill_process(pid(&child), Signal::INT).unwrap();
            is_interrupted = true;
        }
    }
    let status = child.wait().unwrap();
    limit.check(until.unwrap_or("the end of a command"));
    (status.code(), String::from_utf8(written).unwrap())
}

/// Runs the sandbox on a pseudoterminal until a picture contains `until`. Returns everything that was written to the
/// terminal.
fn on_a_terminal(until: &str, environment: &[(&str, &str)]) -> String {
    let mut command = sandbox(&["--changes-per-second", "20"]);
    command.env_remove("NO_COLOR").envs(environment.iter().copied());
    let (code, written) = recorded(command, [0, 0], Some(until));
    assert_eq!(code, Some(0));
    written
}

#[test]
fn a_terminal_shows_a_live_picture_and_is_restored() {
    let written = on_a_terminal("change 3:", &[]);
    let (before, after) = written.split_once("\u{1b}[?25h\u{1b}[?1049l").expect("the first screen comes back");
    assert!(before.starts_with("\u{1b}[?1049h\u{1b}[?25l"), "{before:?}");
    for part in ["\u{1b}[1mEXPORTS\u{1b}[0m", "\u{1b}[1mIMPORTS\u{1b}[0m", "member-1 -> member-2"] {
        assert!(before.contains(part), "{part:?} is not in {before:?}");
    }
    assert!(after.contains("writes for a change") && !after.contains('\u{1b}'), "{after:?}");
    assert!(after.contains("exports and imports were as they should be; removed 3 clusters"), "{after:?}");
}

#[test]
fn no_color_is_respected() {
    let written = on_a_terminal("change 1:", &[("NO_COLOR", "1")]);
    assert!(written.contains("EXPORTS"));
    assert!(!written.contains("\u{1b}[1m") && !written.contains("\u{1b}[32m"), "{written:?}");
}

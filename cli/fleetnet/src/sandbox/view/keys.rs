//! Keys that a user presses while the terminal view runs.

use crate::limits::KEY_QUEUE;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal as _, Read as _};
use tokio::sync::{broadcast, mpsc};

/// Key that changes something in the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Pauses the changes, or goes on with them.
    Pause,
    /// Kills an agent.
    Kill,
    /// Disconnects the hub, or connects it again.
    Hub,
}

/// Keys that are pressed from now on. A key is dropped if nobody waits for keys.
pub(crate) struct Keys {
    pressed: broadcast::Receiver<Key>,
    /// Keeps the channel open, so that a wait never fails.
    _sender: broadcast::Sender<Key>,
}

impl Keys {
    pub(super) fn of(pressed: &broadcast::Sender<Key>) -> Self {
        Self { pressed: pressed.subscribe(), _sender: pressed.clone() }
    }

    /// Forgets the keys so far, for example those of a scenario, which has no keys.
    pub(crate) fn forget(&mut self) {
        while !self.pressed.is_empty() {
            // An error means that keys were dropped, so nothing is left to forget of them.
            let _ = self.pressed.try_recv();
        }
    }

    /// Waits for the next key. Dropping this future loses no key.
    pub(crate) async fn next(&mut self) -> Key {
        loop {
            // An error means that keys were dropped, because nobody waited.
            if let Ok(key) = self.pressed.recv().await {
                return key;
            }
        }
    }
}

/// Meaning of a typed character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Key(Key),
    Quit,
    Legend,
}

impl Typed {
    pub(super) fn of(byte: u8) -> Option<Self> {
        match byte.to_ascii_lowercase() {
            b'p' => Some(Self::Key(Key::Pause)),
            b'k' => Some(Self::Key(Key::Kill)),
            b'h' => Some(Self::Key(Key::Hub)),
            b'q' => Some(Self::Quit),
            b'?' => Some(Self::Legend),
            _ => None,
        }
    }
}

/// Terminal that passes each key on at once and does not show it. Dropping this value restores the terminal.
pub(super) struct Keyboard(Termios);

impl Keyboard {
    /// Returns `None` if standard input is no terminal. Also returns the characters that are typed.
    pub(super) fn open() -> (Option<Self>, mpsc::Receiver<u8>) {
        let (sender, typed) = mpsc::channel(KEY_QUEUE);
        let keyboard = Self::change();
        if keyboard.is_some() {
            // The thread ends with the process: a read from a terminal cannot be interrupted.
            std::thread::spawn(move || {
                let mut byte = [0];
                while matches!(io::stdin().read(&mut byte), Ok(1)) {
                    if sender.blocking_send(byte[0]).is_err() {
                        break;
                    }
                }
            });
        }
        (keyboard, typed)
    }

    fn change() -> Option<Self> {
        if !io::stdin().is_terminal() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok()?;
        let mut changed = before.clone();
        // Signals stay on, so Ctrl-C works as everywhere.
        changed.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        changed.special_codes[SpecialCodeIndex::VMIN] = 1;
        changed.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &changed).ok()?;
        Some(Self(before))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // This fails if the terminal is closed. A closed terminal needs no settings.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_letter_in_either_case() {
        for (byte, expected) in [
            (b'p', Some(Typed::Key(Key::Pause))),
            (b'K', Some(Typed::Key(Key::Kill))),
            (b'h', Some(Typed::Key(Key::Hub))),
            (b'q', Some(Typed::Quit)),
            (b'?', Some(Typed::Legend)),
            (b'x', None),
            (0x1b, None),
        ] {
            assert_eq!(Typed::of(byte), expected, "{byte}");
        }
    }

    #[tokio::test]
    async fn keys_without_a_listener_are_dropped() {
        let (pressed, _) = broadcast::channel(KEY_QUEUE);
        let mut keys = Keys::of(&pressed);
        for _ in 0..=KEY_QUEUE {
            pressed.send(Key::Pause).unwrap();
        }
        pressed.send(Key::Hub).unwrap();
        let mut last = keys.next().await;
        while !keys.pressed.is_empty() {
            last = keys.next().await;
        }
        assert_eq!(last, Key::Hub);
    }
}

//! Views of the sandbox's events: a live picture on a terminal, lines for other outputs, JSON for machines.

mod json;
mod keys;
mod legend;
mod lines;
mod picture;
mod requests;
mod state;
mod terminal;

use super::ending::Ending;
use super::event::{Event, TimedEvent};
use super::stop::Stop;
use crate::args::Options;
use crate::limits::{EVENT_QUEUE, FRAME, KEY_QUEUE};
use anyhow::Context as _;
use chrono::Local;
pub(crate) use keys::{Key, Keys};
use keys::{Keyboard, Typed};
use picture::Colours;
use state::State;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use terminal::Screen;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Sender of events to the view. Clones send to the same view.
#[derive(Clone)]
pub(crate) struct Stage {
    events: mpsc::Sender<Option<TimedEvent>>,
    /// Keys that the user of a terminal presses.
    pressed: broadcast::Sender<Key>,
}

impl Stage {
    fn new(events: mpsc::Sender<Option<TimedEvent>>) -> Self {
        Self { events, pressed: broadcast::channel(KEY_QUEUE).0 }
    }

    /// Returns the keys that the user presses from now on.
    pub(crate) fn keys(&self) -> Keys {
        Keys::of(&self.pressed)
    }

    /// Sends an event to the view. Waits while the view's queue is full.
    pub(crate) async fn emit(&self, event: Event) {
        // Sending fails if the view is closed. A closed view does not need the event.
        let _ = self.events.send(Some(TimedEvent { at: Local::now(), event })).await;
    }
}

/// Receiver of the events of a [`Stage`], for tests.
#[cfg(test)]
pub(crate) struct Recorded(mpsc::Receiver<Option<TimedEvent>>);

#[cfg(test)]
impl Stage {
    /// Returns a sender of events, and the receiver of its events in place of a view.
    pub(crate) fn recorded() -> (Self, Recorded) {
        let (sender, events) = mpsc::channel(EVENT_QUEUE);
        (Self::new(sender), Recorded(events))
    }
}

#[cfg(test)]
impl Recorded {
    /// Returns the next event.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.0.recv().await?.map(|timed| timed.event)
    }
}

/// View that receives the events of a [`Stage`] and shows them.
pub(crate) struct View(JoinHandle<io::Result<()>>);

impl View {
    /// Waits until all events so far are shown and the terminal is restored. Later events are dropped.
    ///
    /// # Errors
    /// If the output fails. A closed output is no error.
    pub(crate) async fn close(self, stage: Stage) -> io::Result<()> {
        // `None` ends the view, even if other senders exist.
        let _ = stage.events.send(None).await;
        match self.0.await {
            Ok(Err(error)) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            Ok(_) => Ok(()),
            Err(error) => error.try_into_panic().map_or(Ok(()), |panic| std::panic::resume_unwind(panic)),
        }
    }
}

/// Opens the view that the options and the kind of standard output require. Requests a stop when standard output is
/// closed.
pub(crate) fn open(options: &Options, stop: &Stop) -> (Stage, View) {
    let (sender, events) = mpsc::channel(EVENT_QUEUE);
    let (stop, json) = (stop.clone(), options.json);
    let stage = Stage::new(sender);
    let pressed = stage.pressed.clone();
    // With --packets, each second has a line.
    let live =
        !options.once && !options.packets && io::stdout().is_terminal() && variable("TERM") != Some("dumb".to_owned());
    let shown = async move {
        let shown = match (json, live) {
            (true, _) => write_lines(events, |timed| Some(json::line(timed))).await,
            (false, false) => {
                write_lines(events, |timed| lines::line(&timed.event).map(|line| lines::at(timed.at, &line))).await
            }
            (false, true) => draw(events, &stop, &pressed).await,
        };
        if shown.is_err() {
            stop.request();
        }
        shown
    };
    (stage, View(tokio::spawn(shown)))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

async fn write_lines(
    mut events: mpsc::Receiver<Option<TimedEvent>>,
    line: impl Fn(&TimedEvent) -> Option<String>,
) -> io::Result<()> {
    while let Some(Some(timed)) = events.recv().await {
        if let Some(line) = line(&timed) {
            let mut output = io::stdout().lock();
            writeln!(output, "{line}")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// Draws a picture of the current state each time that the duration [`FRAME`] has passed, but only if there was a new
/// event. At the end, prints a summary that stays on the terminal.
async fn draw(
    mut events: mpsc::Receiver<Option<TimedEvent>>,
    stop: &Stop,
    pressed: &broadcast::Sender<Key>,
) -> io::Result<()> {
    let colours = if variable("NO_COLOR").is_some() { Colours::Without } else { Colours::With };
    let mut state = State::default();
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let screen = Screen::open()?;
    let (keyboard, mut typed) = Keyboard::open();
    state.has_keys = keyboard.is_some();
    loop {
        tokio::select! {
            next = events.recv() => match next {
                Some(Some(TimedEvent { at, event })) => state.take(at, event),
                Some(None) | None => break,
            },
            Some(byte) = typed.recv() => match Typed::of(byte) {
                Some(Typed::Quit) => stop.request(),
                Some(Typed::Legend) => state.has_legend = !state.has_legend,
                // Nobody listens while the fleet starts and during a scenario.
                Some(Typed::Key(key)) => _ = pressed.send(key),
                None => {}
            },
            _ = frames.tick() => screen.show(&picture::draw(&state, Local::now(), terminal::size(), colours))?,
        }
    }
    drop(keyboard);
    drop(screen);
    let mut output = io::stdout().lock();
    for line in picture::last(&state) {
        writeln!(output, "{line}")?;
    }
    output.flush()
}

/// Opens the view, does the work, and waits until all output is written.
pub(super) async fn with_view(
    options: &Options,
    stop: &Stop,
    work: impl AsyncFnOnce(&Stage) -> anyhow::Result<Ending>,
) -> anyhow::Result<Ending> {
    let (stage, view) = open(options, stop);
    let ended = Box::pin(work(&stage)).await;
    // Wait until all output is written. After a second signal to stop, do not wait, because the reader of the output
    // may be blocked.
    let closed = stop.unless_insisted(view.close(stage)).await;
    closed.unwrap_or(Ok(())).context("standard output cannot be written to")?;
    ended
}

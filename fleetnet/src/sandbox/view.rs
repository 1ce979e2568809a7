//! Shows what is told: as a live picture on a terminal, as lines elsewhere, as JSON for machines.

mod json;
mod lines;
mod picture;
mod state;
mod terminal;

use super::event::Event;
use super::stop::Stop;
use crate::args::Options;
use crate::limits::{FRAME, TOLD};
use chrono::{DateTime, Local};
use picture::Colours;
use state::State;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use terminal::Screen;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// An event and when it happened.
#[derive(Clone, Debug)]
struct Told {
    at: DateTime<Local>,
    event: Event,
}

/// Where events are told. Clones lead to the same view.
#[derive(Clone)]
pub(crate) struct Stage(mpsc::Sender<Option<Told>>);

impl Stage {
    /// Tells one; waits while the view is far behind.
    pub(crate) async fn tell(&self, event: Event) {
        // Without a view nobody is interested any more.
        let _ = self.0.send(Some(Told { at: Local::now(), event })).await;
    }
}

/// What is told on a stage, for tests.
#[cfg(test)]
pub(crate) struct Recorded(mpsc::Receiver<Option<Told>>);

#[cfg(test)]
impl Stage {
    /// A stage and what is told there.
    pub(crate) fn recorded() -> (Self, Recorded) {
        let (sender, told) = mpsc::channel(TOLD);
        (Self(sender), Recorded(told))
    }
}

#[cfg(test)]
impl Recorded {
    /// What is told next.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.0.recv().await?.map(|told| told.event)
    }
}

/// A view that is being shown.
pub(crate) struct View(JoinHandle<io::Result<()>>);

impl View {
    /// Waits until all was shown that was told, and the terminal is as it was. What is told from now on is not shown.
    ///
    /// # Errors
    /// Where it could not be written; a reader that has gone is none.
    pub(crate) async fn close(self, stage: Stage) -> io::Result<()> {
        // Who still has a stage may keep it: this ends the view, not the last of them.
        let _ = stage.0.send(None).await;
        match self.0.await {
            Ok(Err(error)) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            Ok(_) => Ok(()),
            Err(error) => error.try_into_panic().map_or(Ok(()), |panic| std::panic::resume_unwind(panic)),
        }
    }
}

/// Opens the view that fits the options and the standard output. Where that is closed, `stop` is asked for.
pub(crate) fn open(options: &Options, stop: &Stop) -> (Stage, View) {
    let (sender, told) = mpsc::channel(TOLD);
    let (stop, json) = (stop.clone(), options.json);
    let live = !options.once && io::stdout().is_terminal() && variable("TERM") != Some("dumb".to_owned());
    let shown = async move {
        let shown = match (json, live) {
            (true, _) => write_lines(told, |told| Some(json::line(told))).await,
            (false, false) => {
                write_lines(told, |told| lines::line(&told.event).map(|line| lines::at(told.at, &line))).await
            }
            (false, true) => draw(told).await,
        };
        if shown.is_err() {
            stop.request();
        }
        shown
    };
    (Stage(sender), View(tokio::spawn(shown)))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

async fn write_lines(mut told: mpsc::Receiver<Option<Told>>, line: impl Fn(&Told) -> Option<String>) -> io::Result<()> {
    while let Some(Some(told)) = told.recv().await {
        if let Some(line) = line(&told) {
            let mut output = io::stdout().lock();
            writeln!(output, "{line}")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// A picture every [`FRAME`], where something has changed; the last one stays on the screen as lines.
async fn draw(mut told: mpsc::Receiver<Option<Told>>) -> io::Result<()> {
    let colours = if variable("NO_COLOR").is_some() { Colours::Without } else { Colours::With };
    let mut state = State::default();
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let screen = Screen::open()?;
    loop {
        tokio::select! {
            next = told.recv() => match next {
                Some(Some(Told { at, event })) => state.take(at, event),
                Some(None) | None => break,
            },
            _ = frames.tick() => screen.show(&picture::draw(&state, Local::now(), terminal::size(), colours))?,
        }
    }
    drop(screen);
    let mut output = io::stdout().lock();
    for line in picture::last(&state) {
        writeln!(output, "{line}")?;
    }
    output.flush()
}

//! Pages that are connected.

use tokio::sync::watch;

/// Number of pages that are connected. Dropping a clone's [`Visit`] counts one page less.
#[derive(Clone, Debug)]
pub(super) struct Visits(watch::Sender<usize>);

/// One connected page.
#[derive(Debug)]
pub(super) struct Visit(watch::Sender<usize>);

impl Visits {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Counts one more page, until the returned value is dropped.
    pub(super) fn begin(&self) -> Visit {
        self.0.send_modify(|number| *number += 1);
        Visit(self.0.clone())
    }

    /// Waits until a page is connected.
    pub(super) async fn any(&self) {
        // An error is not possible, because `self` is a sender.
        let _ = self.0.subscribe().wait_for(|number| *number > 0).await;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.send_modify(|number| *number -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_page_counts_until_it_is_gone() {
        let visits = Visits::new();
        let (one, two) = (visits.begin(), visits.clone().begin());
        visits.any().await;
        assert_eq!(*visits.0.borrow(), 2);
        drop((one, two));
        assert_eq!(*visits.0.borrow(), 0);
    }
}

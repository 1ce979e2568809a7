//! Work on all processors.

use crate::limits::OUTCOMES;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::available_parallelism;

/// Works on each item, and takes each result in the calling thread as soon as it is there. Ends at the first error of
/// `take`.
///
/// # Errors
/// Those of `take`.
pub(crate) fn each<'a, T: Sync, R: Send, E>(
    items: &'a [T],
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(&'a T, R) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::sync_channel(OUTCOMES);
    let work_on_some = |sender: mpsc::SyncSender<(&'a T, R)>| {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if sender.send((item, work(item))).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for sender in vec![sender; available_parallelism().map_or(1, usize::from)] {
            scope.spawn(|| work_on_some(sender));
        }
        results.into_iter().try_for_each(|(item, result)| take(item, result))
    })
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn each_item_is_worked_on_once_and_the_first_error_ends_the_work() {
        let items: Vec<usize> = (0..100).collect();
        let mut results = Vec::new();
        each(
            &items,
            |item| item * 2,
            |item, double| {
                results.push((*item, double));
                Ok::<(), ()>(())
            },
        )
        .expect("no error");
        results.sort_unstable();
        assert_eq!(results, (0..100).map(|item| (item, item * 2)).collect::<Vec<_>>());
        assert_eq!(each(&items, |item| *item, |_, item| if item == 3 { Err(item) } else { Ok(()) }), Err(3));
    }
}

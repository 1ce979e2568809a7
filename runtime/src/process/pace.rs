//! Pace of work that every client can cause, such as reviews of tokens and TLS handshakes: a minimum time between two
//! turns, and turns that the clients share fairly.
//!
//! A network waits for its own turns only together with one of each other network of the same size, in three sizes. So
//! a client with all addresses of a network has the turns of one client.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};
use tokio::time::{Instant, sleep_until};

/// Client that asks for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Client with an address, which nobody has accepted yet.
    Stranger(IpAddr),
    /// Client that was accepted before. It waits for at most one stranger.
    Accepted,
}

/// Network of clients: its first address, and the length of its prefix.
type Network = (IpAddr, u8);

/// Sizes of the networks that one owner can have all addresses of, from the smallest: a host or a site with IPv6, and a
/// host or an office with IPv4.
const PREFIXES_V6: [u8; 3] = [64, 56, 48];
const PREFIXES_V4: [u8; 2] = [32, 24];
/// All clients together.
const EVERYBODY: Network = (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

/// Returns the networks of a client, from the smallest.
pub(crate) fn networks(client: IpAddr) -> Vec<Network> {
    let (address, bits, prefixes): (_, u8, &[u8]) = match client.to_canonical() {
        IpAddr::V4(address) => (address.to_ipv6_mapped(), 96, &PREFIXES_V4),
        IpAddr::V6(address) => (address, 0, &PREFIXES_V6),
    };
    let network = |prefix: u8| {
        let mask = u128::MAX << (128 - u32::from(bits + prefix));
        (IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask)), bits + prefix)
    };
    prefixes.iter().map(|prefix| network(*prefix)).collect()
}

/// Turns of the clients, one at a time.
#[derive(Debug)]
pub(crate) struct Turns {
    spacing: Duration,
    /// Lock of each network with a stranger that waits. Waiters get a lock in the order in which they came.
    networks: Mutex<BTreeMap<Network, Arc<Mutex<()>>>>,
    /// Start of the last turn. Locked during a turn.
    last: Mutex<Option<Instant>>,
}

/// Turn of a client. The next turn can begin when the value is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    spacing: Duration,
    last: MutexGuard<'a, Option<Instant>>,
    _networks: Vec<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Returns turns with this minimum time between two.
    pub(crate) fn every(spacing: Duration) -> Self {
        Self { spacing, networks: Mutex::default(), last: Mutex::default() }
    }

    /// Waits for the turn of a client.
    pub(crate) async fn take(&self, client: Client) -> Turn<'_> {
        let networks = match client {
            Client::Stranger(address) => self.enter(networks(address).into_iter().chain([EVERYBODY])).await,
            Client::Accepted => Vec::new(),
        };
        Turn { spacing: self.spacing, last: self.last.lock().await, _networks: networks }
    }

    /// Waits until a stranger is the first of each of its networks, from the smallest.
    async fn enter(&self, of_client: impl Iterator<Item = Network>) -> Vec<OwnedMutexGuard<()>> {
        let mut entered = Vec::new();
        for network in of_client {
            let lock = {
                let mut networks = self.networks.lock().await;
                networks.retain(|_, lock| Arc::strong_count(lock) > 1);
                Arc::clone(networks.entry(network).or_default())
            };
            entered.push(lock.lock_owned().await);
        }
        entered
    }
}

impl Turn<'_> {
    /// Waits until enough time has passed since the last turn.
    pub(crate) async fn begin(&mut self) {
        if let Some(last) = *self.last {
            sleep_until(last + self.spacing).await;
        }
        *self.last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinSet;

    const SPACING: Duration = Duration::from_millis(50);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Also rule K15.
    #[test]
    fn a_client_is_in_networks_of_three_sizes() {
        let of =
            |text| networks(address(text)).iter().map(|(first, bits)| format!("{first}/{bits}")).collect::<Vec<_>>();
        assert_eq!(of("2001:db8:1:234::5"), ["2001:db8:1:234::/64", "2001:db8:1:200::/56", "2001:db8:1::/48"]);
        assert_eq!(of("10.1.2.3"), ["::ffff:10.1.2.3/128", "::ffff:10.1.2.0/120"]);
        assert_eq!(of("::ffff:10.1.2.3"), of("10.1.2.3"));
    }

    /// Name of a flood, and the address of each of its 256 clients.
    type Flood = (&'static str, fn(u8) -> IpAddr);

    /// Returns how many turns of strangers begin before one of `client`, if 256 of them wait already.
    async fn before(strangers: impl Fn(u8) -> IpAddr, client: Client) -> usize {
        let turns = Arc::new(Turns::every(SPACING));
        let mut waiting = JoinSet::new();
        for number in 0..=u8::MAX {
            let (turns, stranger) = (Arc::clone(&turns), Client::Stranger(strangers(number)));
            waiting.spawn(async move { turns.take(stranger).await.begin().await });
        }
        tokio::time::sleep(SPACING / 5).await;
        turns.take(client).await.begin().await;
        let begun = std::iter::from_fn(|| waiting.try_join_next()).count();
        waiting.join_all().await;
        turns.enter([].into_iter()).await;
        begun
    }

    /// Rule K15: Clients cause reviews of tokens, or TLS handshakes
    /// Then: The agent makes one review each 50 ms, and begins one handshake each 10 ms. Clients wait in turn: a
    /// network waits for one turn of each other network of its size. The sizes are /64, /56 and /48 of IPv6, and /32
    /// and /24 of IPv4. Of clients with the same number of connections, the agent closes one of the larger network with
    /// the most connections first
    #[tokio::test(start_paused = true)]
    async fn a_client_waits_for_one_turn_of_another_whatever_addresses_that_one_has() {
        let client = Client::Stranger(address("2001:db8:ffff::1"));
        let floods: [Flood; 5] = [
            ("one address", |_| address("10.0.0.1")),
            ("a /24 of IPv4", |last| IpAddr::from([10, 0, 0, last])),
            ("a /64", |last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()])),
            ("a /56", |last| IpAddr::from([0x2001, 0xdb8, 0, last.into(), 0, 0, 0, 1])),
            ("a /48", |last| IpAddr::from([0x2001, 0xdb8, 0, u16::from(last) << 8, 0, 0, 0, 1])),
        ];
        for (flood, strangers) in floods {
            let begun = before(strangers, client).await;
            assert!(begun <= 2, "{flood}: {begun} turns came first");
        }
        let begun = before(|_| address("2001:db8:ffff::1"), client).await;
        assert_eq!(begun, 256, "its own turns come in order");
    }

    /// Also rule K15.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_was_accepted_waits_for_one_stranger_at_most() {
        let begun = before(|last| IpAddr::from([10, last, 0, 1]), Client::Accepted).await;
        assert!(begun <= 2, "{begun} turns came first");
    }

    /// Also rule K15.
    #[tokio::test(start_paused = true)]
    async fn turns_have_a_minimum_time_between_them_and_networks_without_turns_are_forgotten() {
        let (turns, begun) = (Turns::every(SPACING), Instant::now());
        for last in 0..=100 {
            turns.take(Client::Stranger(IpAddr::from([10, 0, last, 1]))).await.begin().await;
        }
        assert_eq!(begun.elapsed(), SPACING * 100);
        assert!(turns.networks.lock().await.len() <= 3);
    }
}

//! DNS server under test: [`CoreDns`], with the plugin `kubernetes`.

use crate::process::Process;
use crate::served::{self, Server};
use crate::watchdog;
use anyhow::Context as _;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, Question};
pub use simple_dns::{RCODE, TYPE};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;

/// Domain of Services of several clusters.
pub const CLUSTERSET: &str = "clusterset.local";

/// Running CoreDNS. Its process is killed when this value is dropped, or when the test process ends in any way.
#[derive(Debug)]
pub struct CoreDns {
    _process: Process,
    port: u16,
}

/// Answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub code: RCODE,
    /// Records of the answer, sorted: addresses, or `port target` of each SRV record.
    pub records: Vec<String>,
}

impl CoreDns {
    /// Starts CoreDNS, which reads a cluster with this kubeconfig. It answers for the cluster, and for Services of
    /// several clusters.
    ///
    /// # Errors
    /// If CoreDNS cannot be built, or does not start.
    pub async fn start(kubeconfig: &Path) -> anyhow::Result<Self> {
        let file = {
            let _pause = watchdog::pause();
            spawn_blocking(programs::coredns::locate).await??
        };
        let configuration = |port: u16| {
            format!(
                ".:{port} {{\n  bind 127.0.0.1\n  errors\n  kubernetes cluster.local {CLUSTERSET} {{\n    kubeconfig {}\n    \
                 multicluster {CLUSTERSET}\n  }}\n}}\n",
                kubeconfig.display()
            )
        };
        let server = Server {
            name: "coredns",
            file,
            arguments: &["-conf"],
            configuration: &configuration,
            listens: "CoreDNS-",
            port_is_taken: "address already in use",
        };
        let (process, port) = served::start(server).await?;
        Ok(Self { _process: process, port })
    }

    /// Asks for the records of a name: of type A, AAAA or SRV.
    pub async fn ask(&self, name: &str, record: TYPE) -> anyhow::Result<Answer> {
        let mut query = Packet::new_query(1);
        query.questions.push(Question::new(Name::new(name)?, record.into(), CLASS::IN.into(), false));
        let query = query.build_bytes_vec()?;
        // Over TCP, no message is lost. Each message begins with its length.
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.write_u16(u16::try_from(query.len())?).await?;
        stream.write_all(&query).await?;
        let mut answer = vec![0; stream.read_u16().await?.into()];
        stream.read_exact(&mut answer).await.context("the answer is cut off")?;
        let answer = Packet::parse(&answer)?;
        let shown = |data: &RData<'_>| match data {
            RData::A(it) => Ipv4Addr::from(it.address).to_string(),
            RData::AAAA(it) => Ipv6Addr::from(it.address).to_string(),
            RData::SRV(it) => format!("{} {}", it.port, it.target),
            other => format!("{other:?}"),
        };
        let mut records: Vec<String> = answer.answers.iter().map(|record| shown(&record.rdata)).collect();
        records.sort();
        Ok(Answer { code: answer.rcode(), records })
    }

    /// Asks until the answer fulfils `condition`. CoreDNS follows the API server with a delay.
    pub async fn answers(
        &self,
        name: &str,
        record: TYPE,
        condition: impl Fn(&Answer) -> bool,
    ) -> anyhow::Result<Answer> {
        let deadline = crate::eventually::Deadline::start();
        loop {
            let answer = self.ask(name, record).await?;
            if condition(&answer) {
                return Ok(answer);
            }
            deadline.pause(|| format!("CoreDNS answers for {name} {record:?}: {answer:?}")).await?;
        }
    }
}

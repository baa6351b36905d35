//! Looks at paths by other means than duel: [`flow`](super::flow), and the kernel's counters.

use super::{Op, PathTwin};
use crate::arena::{Arena, Client};
use crate::servers::Up;
use anyhow::Context;

impl Client {
    /// Mean time of an exchange of one byte, in microseconds.
    pub(crate) fn exchange_us(&self, up: &Up<PathTwin>, count: u32) -> anyhow::Result<f64> {
        self.flow(up, "exchange", &["--count", &count.to_string()])
    }

    /// Bytes per second over so many streams, from the server or to it.
    pub(crate) fn bytes_per_s(&self, up: &Up<PathTwin>, what: Op, streams: u32) -> anyhow::Result<f64> {
        let what = if what == Op::BulkReverse { "down" } else { "up" };
        self.flow(up, what, &["--streams", &streams.to_string()])
    }

    /// What the path's op takes, by other means than duel: microseconds of an exchange or a connection, or for a kilobyte over
    /// as many streams as duel's; of datagrams those of a thousand that do not arrive, of as many as all streams send.
    pub(crate) fn op_takes(&self, up: &Up<PathTwin>) -> anyhow::Result<f64> {
        let streams = up.twin().streams;
        match up.twin().op {
            op @ (Op::Bulk | Op::BulkReverse) => Ok(1e9 / self.bytes_per_s(up, op, streams)?),
            Op::Exchange => self.exchange_us(up, 200),
            Op::Connect => self.flow(up, "connect", &["--count", "100"]),
            Op::Datagrams { mbit_per_s } => {
                self.flow(up, "datagrams", &["--mbit-per-s", &(streams * mbit_per_s).to_string()])
            }
        }
    }

    fn flow(&self, up: &Up<PathTwin>, what: &str, words: &[&str]) -> anyhow::Result<f64> {
        let program = std::env::current_exe()?;
        let to = up.flow_address();
        let said =
            self.run(&program.to_string_lossy(), &[&["flow-ask", "--to", &to, "--what", what][..], words].concat())?;
        said.trim().parse().with_context(|| format!("the sender printed {said:?}"))
    }
}

impl Arena<PathTwin> {
    /// Segments that both ends send again while the op goes over the path.
    pub(crate) fn sent_again(&self, up: &Up<PathTwin>) -> anyhow::Result<f64> {
        let before = self.again_so_far(up)?;
        self.client.op_takes(up)?;
        Ok(self.again_so_far(up)? - before)
    }

    fn again_so_far(&self, up: &Up<PathTwin>) -> anyhow::Result<f64> {
        const COUNTER: &str = "TcpRetransSegs";
        let words = ["-asz", COUNTER];
        let count = |text: String| {
            let row = text.lines().find_map(|line| line.strip_prefix(COUNTER)).unwrap_or_default();
            row.split_whitespace().next().and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0)
        };
        Ok(count(up.namespace().run("nstat", &words)?) + count(self.client.run("nstat", &words)?))
    }
}

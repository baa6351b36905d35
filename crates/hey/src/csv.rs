//! `-o csv`: a line for each response, in seconds.

use crate::results::Parts;
use duel_load::OpRecord;
use duel_model::Nanos;

/// The line above all.
pub const HEADER: &str = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n";

/// The line of one response; `None` where there was none: a request that failed has no such times.
pub fn row(op: &OpRecord) -> Option<String> {
    let status = op.status.filter(|_| op.failure.is_none())?;
    let Parts { dialup, lookup, write, wait, read } = Parts::of(op);
    let times = [op.response_ns(), dialup, lookup, write, wait, read].map(seconds).join(",");
    Some(format!("{times},{status},{}\n", seconds(op.start_ns)))
}

fn seconds(nanos: Nanos) -> String {
    format!("{:.4}", nanos as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{failure, response};

    #[test]
    fn a_row_has_the_header_s_columns() {
        let mut op = response(302, 1_234_567_890, 0);
        op.start_ns = 500_000_000;
        let line = row(&op).unwrap();
        assert_eq!(line, "1.2346,0.0000,0.0000,0.0000,1.2346,0.0000,302,0.5000\n");
        assert_eq!(line.split(',').count(), HEADER.split(',').count());
        assert_eq!(row(&failure("reset")), None);
    }
}

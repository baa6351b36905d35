//! Looks at web servers by other means than duel: curl, wrk, ab and h2load. They speak the version of HTTP that duel will.

use crate::arena::{Client, median};
use crate::servers::Up;
use anyhow::Context;

impl Client {
    /// Times of requests by curl, one after the other: the median of each phase.
    pub(crate) fn curl(&self, up: &Up, requests: &Requests) -> anyhow::Result<Times> {
        let rows = self.curl_each(up, requests)?;
        let column = |n: usize| median(rows.iter().map(|row| row[n]).collect());
        Ok(Times {
            lookup_s: column(0)?,
            connect_s: column(1)? - column(0)?,
            tls_s: (column(2)? - column(1)?).max(0.0),
            total_s: column(3)?,
            body_bytes: column(4)?,
            head_bytes: column(5)?,
            connects: rows.iter().map(|row| row[6]).sum(),
        })
    }

    /// The time of each of these requests, whole, in seconds.
    pub(crate) fn curl_totals(&self, up: &Up, requests: &Requests) -> anyhow::Result<Vec<f64>> {
        Ok(self.curl_each(up, requests)?.into_iter().map(|row| row[3]).collect())
    }

    /// What curl tells of each request: times from its beginning, bytes, connections.
    fn curl_each(&self, up: &Up, requests: &Requests) -> anyhow::Result<Vec<[f64; 7]>> {
        const FORMAT: &str = "%{time_namelookup} %{time_connect} %{time_appconnect} %{time_total} \
                              %{size_download} %{size_header} %{num_connects}\\n";
        let url = format!("{}?n=[1-{}]", up.url(), requests.count);
        // A connection of HTTP/2 is not closed for the sake of one request.
        let version = if up.twin().http.http2 && !requests.connect_anew { "--http2" } else { "--http1.1" };
        let mut args =
            vec!["-s", "-k", version, "--no-sessionid", "--max-time", "120", "-o", "/dev/null", "-w", FORMAT];
        if requests.connect_anew {
            args.extend(["-H", "Connection: close"]);
        }
        for word in &requests.words {
            args.push(word);
        }
        args.push(&url);
        let printed = self.run("curl", &args)?;
        let row = |line: &str| {
            let figures: Vec<f64> = line.split(' ').filter_map(|figure| figure.parse().ok()).collect();
            figures.try_into().ok()
        };
        Ok(printed.lines().filter_map(row).collect())
    }

    /// Requests per second over HTTP/2 or HTTP/1.1, by h2load.
    pub(crate) fn h2load(&self, up: &Up, load: &H2load) -> anyhow::Result<f64> {
        let (connections, streams) = (load.connections.to_string(), load.streams.to_string());
        let mut args = vec!["-c", &connections, "-m", &streams, "-t", "1"];
        let requests = load.requests.map(|requests| requests.to_string());
        let seconds = load.seconds.to_string();
        args.extend(requests.as_ref().map_or(["-D", &seconds], |requests| ["-n", requests]));
        args.extend(load.headers.iter().flat_map(|header| ["-H", header]));
        args.extend(load.http1.then_some("--h1"));
        let windows = load.window_bits.map(|bits| bits.to_string());
        if let Some(bits) = &windows {
            args.extend(["-w", bits, "-W", bits]);
        }
        let body = up.scratch("body");
        let body_path = body.display().to_string();
        if let Some(bytes) = load.body_bytes {
            std::fs::write(&body, vec![b'b'; bytes as usize])?;
            args.extend(["-d", &body_path]);
        }
        let url = up.url();
        args.push(&url);
        let printed = self.run("h2load", &args)?;
        anyhow::ensure!(!mostly_refused(&printed), "h2load got errors for answers: {printed}");
        let per_s = printed.lines().find_map(|line| {
            let (before, _) = line.strip_prefix("finished in ")?.split_once(" req/s")?;
            before.rsplit(' ').next()?.parse().ok()
        });
        per_s.filter(|per_s| *per_s > 0.0).with_context(|| format!("h2load printed {printed:?}"))
    }

    /// Load by another generator, and what the server needs for it.
    pub(crate) fn load(&self, up: &Up, load: &ToolLoad) -> anyhow::Result<Served> {
        let cpu_before = up.cpu_ns()?;
        let per_s = if up.twin().http.http2 && !load.connect_anew {
            let &ToolLoad { connections, streams, seconds, headers, .. } = load;
            self.h2load(up, &H2load { connections, streams, seconds, headers, ..H2load::default() })?
        } else {
            self.over_http1(up, load)?
        };
        let cpu_ns = up.cpu_ns()?.saturating_sub(cpu_before);
        Ok(Served { per_s, server_cpu_us: cpu_ns as f64 / 1e3 / (per_s * f64::from(load.seconds)) })
    }

    /// Requests per second by wrk, or by ab where each connection is to make a full TLS handshake (wrk resumes).
    fn over_http1(&self, up: &Up, load: &ToolLoad) -> anyhow::Result<f64> {
        let (connections, seconds, url) = (load.connections.to_string(), load.seconds.to_string(), up.url());
        let full_handshakes = load.connect_anew && up.twin().tls.is_some() && !load.resumes;
        let (program, mut args, figure) = if full_handshakes {
            ("ab", vec!["-q", "-c", &connections, "-t", &seconds, "-n", "10000000", "-s", "20"], "Requests per second:")
        } else {
            ("wrk", vec!["-t", "1", "-c", &connections, "-d", &seconds, "--timeout", "20s"], "Requests/sec:")
        };
        if load.connect_anew && !full_handshakes {
            args.extend(["-H", "Connection: close"]);
        }
        for header in load.headers {
            args.extend(["-H", header]);
        }
        args.push(&url);
        let printed = self.run(program, &args)?;
        let per_s: f64 = printed
            .lines()
            .find_map(|line| line.trim().strip_prefix(figure)?.split_whitespace().next()?.parse().ok())
            .with_context(|| format!("{program} printed {printed:?}"))?;
        anyhow::ensure!(per_s > 0.0, "{program} got no answers: {printed}");
        anyhow::ensure!(!mostly_refused(&printed), "{program} got errors for answers: {printed}");
        Ok(per_s)
    }
}

/// Whether more than half of the answers that wrk, ab or h2load tells of have a status of errors. Limits on clients refuse some on purpose.
fn mostly_refused(printed: &str) -> bool {
    // status codes: 90 2xx, 0 3xx, 4 4xx, 6 5xx
    if let Some(codes) = printed.lines().find_map(|line| line.strip_prefix("status codes: ")) {
        let counts: Vec<u64> = codes.split(", ").filter_map(|code| code.split_once(' ')?.0.parse().ok()).collect();
        return matches!(counts[..], [ok, moved, client, server] if client + server > ok + moved);
    }
    let number = |text: &str| text.split_whitespace().next()?.parse::<u64>().ok();
    let after = |figure: &str| printed.lines().find_map(|line| number(line.trim().strip_prefix(figure)?));
    let refused = after("Non-2xx or 3xx responses:").or_else(|| after("Non-2xx responses:"));
    let in_wrk = || printed.lines().find(|line| line.contains(" requests in ")).and_then(number);
    let answers = after("Complete requests:").or_else(in_wrk);
    refused.zip(answers).is_some_and(|(refused, answers)| 2 * refused > answers)
}

/// What h2load is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct H2load {
    pub(crate) connections: u32,
    /// Requests at a time on each.
    pub(crate) streams: u32,
    pub(crate) http1: bool,
    /// So many in all, however long they take; else all that are done in these seconds.
    pub(crate) requests: Option<u32>,
    pub(crate) seconds: u32,
    pub(crate) headers: &'static [&'static str],
    /// Its own window, as a power of two, less one.
    pub(crate) window_bits: Option<u32>,
    pub(crate) body_bytes: Option<u32>,
}

impl Default for H2load {
    /// One request at a time.
    fn default() -> H2load {
        H2load {
            connections: 1,
            streams: 1,
            http1: false,
            requests: None,
            seconds: 1,
            headers: &[],
            window_bits: None,
            body_bytes: None,
        }
    }
}

/// What curl is to do.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    pub(crate) count: u32,
    pub(crate) connect_anew: bool,
    pub(crate) words: Vec<&'static str>,
}

impl Requests {
    pub(crate) fn connecting(count: u32) -> Requests {
        Requests { count, connect_anew: true, words: Vec::new() }
    }

    pub(crate) fn kept_alive(count: u32) -> Requests {
        Requests { count, connect_anew: false, words: Vec::new() }
    }
}

/// Medians over requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) lookup_s: f64,
    pub(crate) connect_s: f64,
    pub(crate) tls_s: f64,
    pub(crate) total_s: f64,
    pub(crate) body_bytes: f64,
    pub(crate) head_bytes: f64,
    /// Connections made for all requests together.
    pub(crate) connects: f64,
}

/// What a load generator is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolLoad {
    pub(crate) connections: u32,
    /// Requests at a time on each connection of HTTP/2.
    pub(crate) streams: u32,
    pub(crate) seconds: u32,
    pub(crate) connect_anew: bool,
    /// New connections resume TLS sessions.
    pub(crate) resumes: bool,
    pub(crate) headers: &'static [&'static str],
}

impl ToolLoad {
    /// Two seconds over kept connections.
    pub(crate) fn over(connections: u32) -> ToolLoad {
        ToolLoad { connections, streams: 1, seconds: 2, connect_anew: false, resumes: false, headers: &[] }
    }

    /// Two seconds, a new connection for each request.
    pub(crate) fn connecting(connections: u32) -> ToolLoad {
        ToolLoad { connect_anew: true, ..ToolLoad::over(connections) }
    }
}

/// What a load generator saw, and what the server needed for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) per_s: f64,
    /// CPU time of all server processes per request.
    pub(crate) server_cpu_us: f64,
}

#[cfg(test)]
mod tests {
    use super::mostly_refused;

    #[test]
    fn errors_for_answers_are_no_load() {
        let wrk = |refused: u32| {
            format!("  1151 requests in 1.00s, 9MB read\n  Non-2xx or 3xx responses: {refused}\nRequests/sec: 1151.0\n")
        };
        let ab = |refused: u32| format!("Complete requests:      400\nNon-2xx responses:      {refused}\n");
        let h2load = |refused: u32| {
            format!("finished in 1.00s\nstatus codes: 100 2xx, 0 3xx, 5 4xx, {refused} 5xx\ntraffic: 9MB\n")
        };
        assert!(mostly_refused(&h2load(96)) && !mostly_refused(&h2load(95)));
        assert!(mostly_refused(&wrk(836)) && mostly_refused(&ab(399)));
        assert!(!mostly_refused(&wrk(300)) && !mostly_refused(&ab(100)));
        assert!(!mostly_refused("  1151 requests in 1.00s, 9MB read\nRequests/sec: 1151.0\n"));
    }
}

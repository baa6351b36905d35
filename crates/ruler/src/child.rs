//! The server in a process of its own, that never outlives its parent.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::config::{Config, Listen};
use crate::server::Ruler;
use crate::tls::{Ciphers, KeyKind, Tls, TlsIdentity, Versions};
use crate::truth::Truth;

/// What a child process is told.
#[derive(Clone, Debug, Default)]
pub struct ChildConfig {
    /// The server; it must listen on TCP.
    pub config: Config,
    /// Where to write what a client must trust, in PEM; needs TLS.
    pub ca_pem: Option<PathBuf>,
}

/// The words that [`ChildConfig::from_args`] understands.
pub const USAGE: &str = "\
--listen ADDR:PORT    instead of 127.0.0.1:0
--tls KEY             HTTPS; KEY is p256, rsa2048 or rsa4096
--expired             a certificate that has expired
--tls12 | --tls13     only this version
--cipher NAME         only aes128, aes256 or chacha20
--no-resumption       full handshakes only
--no-keepalive        one request on each connection
--accept-then-close   accept, and close at once
--refuse-after N      die after N requests
--burn-us US          CPU burnt for each request
--burn-kib-ns NS      CPU burnt for each KiB of a bulk body
--burn-handshake-us US  CPU burnt for each full handshake
--sleep-us US         slept before each answer
--ca-pem PATH         write the certificate to trust there
";

impl ChildConfig {
    /// From a child's command line, without the program's name.
    pub fn from_args<I, S>(args: I) -> Result<ChildConfig, String>
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        let mut child = ChildConfig::default();
        let (mut key, mut expired, mut resumption) = (None, false, true);
        let (mut versions, mut ciphers) = (Versions::Both, Ciphers::All);
        let mut args = args.into_iter().map(Into::into);
        while let Some(word) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--listen" => child.config.listen = Listen::Tcp(parsed(&word, &value()?)?),
                "--tls" => {
                    key = Some(match value()?.as_str() {
                        "p256" => KeyKind::P256,
                        "rsa2048" => KeyKind::Rsa2048,
                        "rsa4096" => KeyKind::Rsa4096,
                        other => return Err(format!("--tls {other}: p256, rsa2048 or rsa4096 is known")),
                    });
                }
                "--expired" => expired = true,
                "--tls12" => versions = Versions::Tls12,
                "--tls13" => versions = Versions::Tls13,
                "--cipher" => {
                    ciphers = match value()?.as_str() {
                        "aes128" => Ciphers::Aes128Gcm,
                        "aes256" => Ciphers::Aes256Gcm,
                        "chacha20" => Ciphers::ChaCha20,
                        other => return Err(format!("--cipher {other}: aes128, aes256 or chacha20 is known")),
                    };
                }
                "--no-resumption" => resumption = false,
                "--no-keepalive" => child.config.keepalive = false,
                "--accept-then-close" => child.config.accept_then_close = true,
                "--refuse-after" => child.config.refuse_after = Some(parsed(&word, &value()?)?),
                "--burn-us" => {
                    child.config.handicap.burn_per_request = Duration::from_micros(parsed(&word, &value()?)?);
                }
                "--burn-kib-ns" => {
                    child.config.handicap.burn_per_kib = Duration::from_nanos(parsed(&word, &value()?)?);
                }
                "--burn-handshake-us" => {
                    child.config.handicap.burn_per_handshake = Duration::from_micros(parsed(&word, &value()?)?);
                }
                "--sleep-us" => {
                    child.config.handicap.sleep_per_request = Duration::from_micros(parsed(&word, &value()?)?);
                }
                "--ca-pem" => child.ca_pem = Some(value()?.into()),
                _ => return Err(format!("{word} is not known\n{USAGE}")),
            }
        }
        if let Some(key) = key {
            let identity = if expired { TlsIdentity::expired(key) } else { TlsIdentity::self_signed(key) };
            let identity = identity.map_err(|error| error.to_string())?;
            child.config.tls = Some(Tls { identity, resumption, versions, ciphers });
        }
        Ok(child)
    }
}

/// Serves until standard input ends, which it does when the parent dies, however it dies. Prints `ready PORT` when
/// connections are accepted.
pub fn main(child: ChildConfig) -> io::Result<Truth> {
    // Away from the parent's terminal. Whoever leads a process group of its own already, as from a shell by hand, stays.
    let _ = rustix::process::setsid();
    raise_descriptor_limit();
    if let Some(path) = &child.ca_pem {
        let Some(tls) = &child.config.tls else {
            return Err(io::Error::other("there is no certificate to write without TLS"));
        };
        std::fs::write(path, tls.identity.ca_pem())
            .map_err(|error| io::Error::new(error.kind(), format!("could not write {}: {error}", path.display())))?;
    }
    if let Listen::Unix(_) = child.config.listen {
        return Err(io::Error::other("a child process listens on TCP"));
    }
    let ruler = Ruler::start(child.config)?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "ready {}", ruler.addr().port())?;
    stdout.flush()?;
    drop(stdout);
    let mut stdin = io::stdin().lock();
    let mut scratch = [0; 256];
    // An error is as final as the end.
    while stdin.read(&mut scratch).is_ok_and(|read| read > 0) {}
    Ok(ruler.stop())
}

/// A server in a child process. Killed and reaped when dropped.
#[derive(Debug)]
pub struct Child {
    addr: SocketAddr,
    process: std::process::Child,
    /// Its end is the child's order to stop.
    stdin: Option<ChildStdin>,
    /// Held open, so that nothing the child prints can fail.
    _stdout: BufReader<ChildStdout>,
}

impl Child {
    /// Executes `exe`, which must come to [`main`] and there has a session of its own, so that Ctrl-C is for the parent alone,
    /// which then ends its children in its own time. Waits for its `ready` line: at most 10 s, which even an RSA-4096
    /// key on a busy machine does not take. Standard error is the parent's.
    pub fn spawn<A, S, E, K, V>(exe: impl AsRef<OsStr>, args: A, envs: E) -> io::Result<Child>
    where
        A: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
        E: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        const PATIENCE: Duration = Duration::from_secs(10);
        let mut process = Command::new(exe)
            .args(args)
            .envs(envs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("could not start the child server: {error}")))?;
        let stdin = process.stdin.take();
        let ready = match process.stdout.take() {
            Some(stdout) => ready(stdout, PATIENCE),
            None => Err(io::Error::other("the child server has no standard output")),
        };
        match ready {
            Ok((port, stdout)) => {
                let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                Ok(Child { addr, process, stdin, _stdout: stdout })
            }
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(error)
            }
        }
    }

    /// Where it listens; the address is 127.0.0.1, whatever it was told.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ends it in order, and waits until it has exited.
    pub fn stop(mut self) -> io::Result<std::process::ExitStatus> {
        drop(self.stdin.take());
        self.process.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads on a thread: a pipe cannot be read with a timeout, and a child that hangs must not hang its parent.
fn ready(stdout: ChildStdout, patience: Duration) -> io::Result<(u16, BufReader<ChildStdout>)> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("ruler-ready".into()).spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        let _ = sender.send(read.map(|_| (line, stdout)));
    })?;
    let (line, stdout) = receiver
        .recv_timeout(patience)
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the child server was not ready within 10 s"))??;
    let port = line.strip_prefix("ready ").and_then(|port| port.trim_end().parse().ok());
    match port {
        Some(port) => Ok((port, stdout)),
        None => Err(io::Error::other(format!("the child server said {line:?} instead of \"ready PORT\""))),
    }
}

/// A thousand connections need a thousand descriptors, and the usual soft limit is 1024.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn parsed<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{word} {value}: the value does not fit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let child = ChildConfig::from_args(["--tls", "p256", "--tls12", "--no-keepalive", "--burn-us", "50"]).unwrap();
        let tls = child.config.tls.unwrap();
        assert_eq!((tls.identity.kind(), tls.versions, tls.resumption), (KeyKind::P256, Versions::Tls12, true));
        assert!(!child.config.keepalive);
        assert_eq!(child.config.handicap.burn_per_request, Duration::from_micros(50));
        for wrong in [&["--tls"][..], &["--tls", "dsa"], &["--burn-us", "-1"], &["--what"]] {
            assert!(ChildConfig::from_args(wrong.iter().copied()).is_err(), "{wrong:?}");
        }
    }
}

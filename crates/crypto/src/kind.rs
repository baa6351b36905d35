//! Crypto work as a kind: which targets it has, and how one is made ready.

use crate::child_process::{Said, Start, Worker};
use crate::schema::{BLOCK, CHUNK, DIRECTION, MASK, OP, RENEW, SCHEMA, failure};
use crate::work::{Factory, READY_NS, told};
use crate::{kernel, known, mask, ops};
use duel_load::{PlainKind, Prepared, WorkloadError, monotonic_ns};
use duel_model::{
    Bound, Facts, FailureKind, KindPlan, LoopKind, MILLISECOND_NS, Nanos, Plan, Schema, WorkloadPlan, sanitize_line,
};
use std::ffi::OsString;
use std::sync::Arc;

/// The kind.
#[derive(Debug, Clone, Copy)]
pub struct Crypto;

/// How long a batch takes. Between two batches the child waits for its next order, some 50 µs on a virtual machine: half a
/// percent of this. A slot of the shortest default length (0.15 s) still has 15.
const BATCH_NS: Nanos = 10 * MILLISECOND_NS;
/// A batch to calibrate with is long enough when it takes this: then reading the clock is nothing in it.
const CALIBRATED_NS: Nanos = MILLISECOND_NS;

/// A target's address, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source<'a> {
    /// A libcrypto by its path; empty: the system's.
    Openssl(&'a str),
    /// The library that duel is built with.
    AwsLc,
    /// The kernel's own crypto, in the implementation of this name; empty: in the one that it prefers.
    Kernel(&'a str),
    /// A program of the user.
    Exec(&'a str),
}

fn source(address: &str) -> Option<Source<'_>> {
    let (scheme, rest) = address.split_once(':')?;
    Some(match scheme {
        "openssl" => Source::Openssl(rest),
        "aws-lc" if rest.is_empty() => Source::AwsLc,
        "kernel" => Source::Kernel(rest),
        "exec" => Source::Exec(rest),
        _ => return None,
    })
}

impl PlainKind for Crypto {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn claims(&self, address: &str) -> bool {
        address.split_once(':').is_some_and(|(scheme, _)| ["openssl", "aws-lc", "kernel", "exec"].contains(&scheme))
    }

    fn check(&self, kind: &KindPlan, address: &str) -> Result<(), WorkloadError> {
        let source = source(address).ok_or_else(|| {
            WorkloadError(format!(
                "'{}' is no crypto library; openssl:PATH, openssl: (the system's), aws-lc:, kernel:, kernel:DRIVER and \
                 exec:COMMAND are",
                sanitize_line(address)
            ))
        })?;
        if source == Source::Exec("") {
            return Err(WorkloadError("exec: needs a command, such as exec:./my-crypto".into()));
        }
        let number = |param| kind.get(param).parse::<u32>().unwrap_or(0);
        let (block, chunk, renew) = (number(&BLOCK), number(&CHUNK), kind.get(&RENEW));
        ops::fits(kind.get(&OP), block, chunk, renew).map_err(WorkloadError)?;
        if let (Source::Kernel(_), Some(op)) = (source, ops::of_name(kind.get(&OP))) {
            kernel::fits(op, block, chunk, renew).map_err(WorkloadError)?;
        }
        if kind.get(&MASK) != MASK.default {
            if !matches!(source, Source::Openssl(_)) {
                return Err(WorkloadError(
                    "--mask works for openssl: targets, which read a mask from their environment".into(),
                ));
            }
            mask::variable(kind.get(&MASK)).map_err(WorkloadError)?;
        }
        Ok(())
    }

    fn prepare(&self, plan: &Plan, kind: &KindPlan, address: &str) -> Result<Prepared, WorkloadError> {
        self.check(kind, address)?;
        let op = ops::of_name(kind.get(&OP)).ok_or_else(|| WorkloadError("no such op".into()))?;
        let [block, chunk] = [&BLOCK, &CHUNK].map(|param| kind.get(param).parse::<u64>().unwrap_or(0));
        let work = format!(
            "work {} block={block} chunk={} direction={} renew={}",
            op.name,
            if chunk == 0 { block } else { chunk },
            kind.get(&DIRECTION),
            op.renews(kind.get(&RENEW))
        );
        let bytes_per_op = if op.has_bytes() { block } else { 0 };
        let mut factory = Factory { start: start(address, kind)?, work, batch: 1, bytes_per_op };
        let fail = |(_, text): (_, String)| WorkloadError(text);
        let (mut child, told_facts) = factory.ready().map_err(fail)?;
        // A fast wrong answer is a failure, so answers come first.
        let decrypt = op.is_cipher() && kind.get(&DIRECTION) == "decrypt";
        for known in known::answers(op.name) {
            child.tell(&known.order(decrypt)).map_err(told).map_err(fail)?;
            match child.hear_until(monotonic_ns() + READY_NS).map_err(told).map_err(fail)? {
                Said::Answer(bytes) => known.check(decrypt, &bytes).map_err(WorkloadError)?,
                Said::Cannot(why) | Said::Failed(why) => return Err(WorkloadError(why)),
                other => return Err(WorkloadError(format!("its child process said {other:?} instead of an answer"))),
            }
        }
        // Ops that are due one by one, counted, told by stages, or have a pause between them are ordered one by one.
        let each_by_itself = plan.load.kind != LoopKind::Closed { think_ns: 0 }
            || matches!(plan.load.bound, Bound::Ops(_))
            || !plan.load.shape.stages.is_empty();
        if !each_by_itself {
            factory.batch = batch(&mut child).map_err(fail)?;
        }
        let mut facts = Facts::default();
        if factory.batch > 1 {
            facts.note("crypto.batch", Some(u64::from(factory.batch)));
        }
        for (name, text) in told_facts {
            facts.note(&format!("crypto.{name}"), Some(text));
        }
        Ok(Prepared { facts, opens: Arc::new(factory) })
    }
}

/// Why a target cannot do all that a plan asks for; `None`: it can. It is made ready for that, under each treatment.
pub fn lacks(plan: &Plan, address: &str) -> Option<String> {
    (0..plan.treatments()).find_map(|number| {
        let treated = plan.treated(number);
        match &treated.workload {
            WorkloadPlan::Plain(kind) => Crypto.prepare(&treated, kind, address).err().map(|why| why.to_string()),
            _ => Some("it does crypto work alone".to_owned()),
        }
    })
}

/// How many ops a batch of this child's has, so that it takes about [`BATCH_NS`].
fn batch(child: &mut Worker) -> Result<u32, (FailureKind, String)> {
    let mut count = 1_u32;
    loop {
        child.tell(&format!("run {count}")).map_err(told)?;
        let took_ns = match child.hear_until(monotonic_ns() + READY_NS).map_err(told)? {
            Said::Done { start_ns, end_ns, .. } => end_ns - start_ns,
            Said::Cannot(why) | Said::Failed(why) => return Err((failure::REFUSED, why)),
            other => {
                return Err((failure::NONSENSE, format!("its child process said {other:?} instead of an end")));
            }
        };
        if took_ns >= CALIBRATED_NS || count >= 1 << 30 {
            let fitting = u64::from(count).saturating_mul(BATCH_NS) / took_ns.max(1);
            return Ok(fitting.clamp(1, 1 << 30) as u32);
        }
        count *= 2;
    }
}

/// How the children of a target are started.
fn start(address: &str, kind: &KindPlan) -> Result<Start, WorkloadError> {
    let source = source(address).ok_or_else(|| WorkloadError("no such target".into()))?;
    let own = || {
        std::env::current_exe()
            .map(OsString::from)
            .map_err(|error| WorkloadError(format!("cannot find duel's own program, which is the child: {error}")))
    };
    let of_own =
        |words: &[&str]| [&["crypto-child"], words].concat().into_iter().map(OsString::from).collect::<Vec<_>>();
    let mut environment = Vec::new();
    let (program, arguments) = match source {
        Source::Openssl(path) => {
            if kind.get(&MASK) != MASK.default {
                environment.push(mask::variable(kind.get(&MASK)).map_err(WorkloadError)?);
            }
            (own()?, if path.is_empty() { of_own(&["openssl"]) } else { of_own(&["openssl", path]) })
        }
        Source::AwsLc => (own()?, of_own(&["aws-lc"])),
        Source::Kernel(driver) => {
            (own()?, if driver.is_empty() { of_own(&["kernel"]) } else { of_own(&["kernel", driver]) })
        }
        // As a shell would start it: a command has arguments.
        Source::Exec(command) => ("/bin/sh".into(), vec!["-c".into(), format!("exec {command}").into()]),
    };
    Ok(Start { program, arguments, environment })
}

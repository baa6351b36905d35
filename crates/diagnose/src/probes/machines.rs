//! Probes that read the targets' machines, or start something there.

use super::{Budget, Entry, FLIP, Kind, Load, Mode, Reads};
use crate::case::Case;
use duel_model::{Capabilities, HostAccess, Nanos, SECOND_NS, TwinChange, TwinPlan};

/// The plan's load, with the targets' machines read before and after each slot.
pub(crate) const HOSTS: Kind = Kind::new(&Entry {
    id: "hosts",
    phrase: "with the machines read around each slot",
    question: "What do the machines do for each request?",
    load: Load::Plan,
    reads: Reads::Hosts,
    possible: |_, case| {
        let any = case.hosts.iter().any(Option::is_some);
        if any { Ok(()) } else { Err("no machine is read".to_owned()) }
    },
    shows_gap: true,
    budget: Budget::AtLeast(HOSTS_BUDGET_NS),
    ..FLIP
});

/// The same with a few of the requests, again and again: what is asked for has been read before. Whatever else the server does for each
/// request it does as before.
pub(crate) const SAME_FEW: Kind = Kind::new(&Entry {
    id: "same-few",
    phrase: "with the same few requests again and again",
    question: "Is what was asked for before served faster?",
    load: Load::Plan,
    reads: Reads::Hosts,
    possible: |kind, case| {
        (HOSTS.entry.possible)(kind, case)?;
        let Some(http) = case.http().filter(|http| http.requests.differ()) else {
            return Err("all requests ask for the same".to_owned());
        };
        // Numbers that a plan gives once would be given again.
        if http.may_write() || http.requests.may_write() {
            Err("the requests may be there to write, each of them once".to_owned())
        } else {
            Ok(())
        }
    },
    varies: |_, _, to| to.same_few = true,
    budget: Budget::AtLeast(HOSTS_BUDGET_NS),
    ..FLIP
});

/// Six pairs of slots of 0.4 s for two targets take 9.6 s with what is drained; see `SHORTEST_READ_SLOT_NS` in `lab`.
const HOSTS_BUDGET_NS: Nanos = 10 * SECOND_NS;

/// The libcrypto that this target's server maps, measured alone.
pub(crate) const LENS: Kind = Kind::new(&Entry {
    id: "lens-of-",
    phrase: "the server's libcrypto alone",
    question: "Does the server's libcrypto use the CPU's AES instructions?",
    load: Load::None,
    reads: Reads::Lens,
    possible: |kind, case| access(kind, case).map(|_| ()),
    ..FLIP
});

/// A private twin in the place of a target's server, started with this change.
pub(crate) const fn twin(change: Option<TwinChange>) -> Kind {
    Kind::new(match change {
        None => &AS_IT_IS,
        Some(TwinChange::NoMask) => &NO_MASK,
        Some(TwinChange::SystemLibcrypto) => &SYSTEM_LIBCRYPTO,
        Some(TwinChange::AllCpus) => &ALL_CPUS,
        Some(TwinChange::MoreWorkers) => &MORE_WORKERS,
        Some(TwinChange::LargePieces) => &LARGE_PIECES,
        Some(TwinChange::NoLimits) => &NO_LIMITS,
    })
}

static AS_IT_IS: Entry = Entry {
    phrase: "with its server started anew as it is",
    question: "Does a private twin of the server show the gap?",
    ..TWIN
};

static NO_MASK: Entry = Entry {
    twin: Some(TwinChange::NoMask),
    phrase: "with its server started anew without a mask on CPU features",
    question: "Does the gap go away on a twin without a mask on CPU features?",
    ..TWIN
};

static SYSTEM_LIBCRYPTO: Entry = Entry {
    twin: Some(TwinChange::SystemLibcrypto),
    phrase: "with its server started anew on the system's own libcrypto",
    question: "Does the gap go away on a twin with the system's libcrypto?",
    ..TWIN
};

static ALL_CPUS: Entry = Entry {
    twin: Some(TwinChange::AllCpus),
    phrase: "with its server started anew on all CPUs of the machine",
    question: "Does the gap go away on a twin that may use all CPUs?",
    ..TWIN
};

static MORE_WORKERS: Entry = Entry {
    twin: Some(TwinChange::MoreWorkers),
    phrase: "with its server started anew with more workers",
    question: "Does the gap go away on a twin with more workers?",
    ..TWIN
};

static LARGE_PIECES: Entry = Entry {
    twin: Some(TwinChange::LargePieces),
    phrase: "with its server started anew to send in large pieces",
    question: "Does the gap go away on a twin that sends in large pieces?",
    ..TWIN
};

static NO_LIMITS: Entry = Entry {
    twin: Some(TwinChange::NoLimits),
    phrase: "with its server started anew without limits of its own",
    question: "Does the gap go away on a twin without limits of its own?",
    ..TWIN
};

/// A twin without its words.
const TWIN: Entry = Entry {
    id: "twin-of-",
    possible: |kind, case| {
        if !case.may_have_twin(kind.number) {
            return Err("no twin of its server may be started".to_owned());
        }
        match access(kind, case)? {
            HostAccess::Local => Ok(()),
            HostAccess::Ssh(_) => {
                Err("not available over ssh: a twin's network has no way out, and load from here would not reach it; run duel on \
                     that machine".to_owned())
            }
        }
    },
    // The environment is read where the twin is started; where it cannot be, the lens may have seen its mask at work.
    varies: |kind, case, to| {
        let mask = mask_in_server(case, kind.number);
        to.twin = Some(TwinPlan { of: kind.number, change: kind.entry.twin, mask, copy: None });
    },
    // Whether a twin is what it should be is found out when it is started.
    ..FLIP
};

/// How the machine of the target is read that the probe is about.
fn access<'a>(kind: Kind, case: &Case<'a>) -> Result<&'a HostAccess, String> {
    let host = case.plan.targets.get(kind.number).and_then(|target| target.host.as_ref());
    host.map(|host| &host.access).ok_or_else(|| "the machine is not read".to_owned())
}

/// The mask on CPU features that a target's running server works with, as far as the lens has read it, in the form of
/// `OPENSSL_ia32cap`: two words of 64 bits, of which those that are set are taken away.
fn mask_in_server(case: &Case<'_>, target: usize) -> Option<String> {
    let reading = case.outcome(&LENS.of(target).id(Mode::Alone))?.lens.as_ref()?;
    let Some(Capabilities::Masked(vector)) = &reading.capabilities else { return None };
    // On Arm it is a single word, and another variable.
    let [whole, server] =
        [&vector.whole, &vector.processes.first()?.words].map(|words| <[u32; 4]>::try_from(&words[..]));
    let (whole, server) = (whole.ok()?, server.ok()?);
    let missing = |low: usize| {
        let at = |place: usize| u64::from(whole[place] & !server[place]);
        at(low) | at(low + 1) << 32
    };
    Some(format!("~{:#x}:~{:#x}", missing(0), missing(2)))
}

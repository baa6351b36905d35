//! `tls.no-asm`: the slow side's libcrypto was built without assembly.
//!
//! From outside, AES, ChaCha20 and full handshakes are all slow, and so they are on a slower or older CPU; plain HTTP
//! would tell, and is not to be had at the same address. So nobody is accused from outside. On the machine the two come
//! apart: the library tells that it holds no assembly, and what it costs grows in the server's own code alone, while what
//! the kernel does for each request takes as long as on the other machine. A slower CPU slows both.
//!
//! That a library holds no assembly is read from its file, where the authors of the assembly left a line of text. A library
//! may lack that text and have the assembly, so it is measured as well where that is possible: only what no mask of CPU
//! features slows down has none.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, fit_by_twin, needs_tls};
use crate::evidence::by_hand;
use crate::evidence::machines::pid;
use crate::evidence::tls_libraries::other_tls_library;
use crate::evidence::worth::{Cpu, CpuWorth, FurtherCpu, demands, reference, told_waiting};
use crate::gap::{Gap, LensLook, Look};
use crate::probes::{CHACHA20, SMALLEST_SWEEP_BYTES};
use crate::twins::{self, Twins};
use duel_model::{Assembly, Confidence, Evidence, TwinChange, format_duration_ns, sanitize_line, web};

static ENTRY: CauseEntry = CauseEntry {
    id: "tls.no-asm",
    description: "the server's TLS library was built without assembly, so that all cryptography is slow",
    signature: "the library's file names no assembly (and the lens finds none), and user time per request is \
                higher than a CPU explains that is slower by as much as kernel time is, and by half more; ruled \
                out only where none of the further user time can be worth the gap",
    at_most: "likely; confirmed where a twin on the system's library is without the gap",
    needs_machine: true,
};

/// How much more a slower CPU may slow the server's own code than the kernel, whose time for a request shows how slow it is.
/// Clocks slow both alike, caches and memory do not. The kernel's time itself is no reason to leave this open: who takes
/// longer for its records wakes a reader for more of them.
const OWN_CODE: f64 = 1.5;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_tls(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let open = |text: String| Err(Standing::Undecided(gap.on_host(text, None)));
    let library = |side| assembly(gap, side).or_else(|| measured(gap, side));
    let Some(of_slow) = library(gap.slow) else {
        return open(format!(
            "how {slow}'s TLS library was built is not known: from outside a slower CPU looks the same"
        ));
    };
    if !of_slow.missing {
        if let Some(other) = other_tls_library(gap) {
            return open(format!(
                "{slow}'s libcrypto holds assembly ({}), but its server has {other} as well, and which of them encrypts \
                 is not known",
                of_slow.told
            ));
        }
        let text = format!("{slow}'s libcrypto holds assembly ({})", of_slow.told);
        return Err(Standing::RuledOut(gap.on_host(text, by_hand::assembly(gap, gap.slow))));
    }
    let of_fast = library(gap.fast);
    if of_fast.as_ref().is_some_and(|library| library.missing) {
        return Err(Standing::RuledOut(holds_none(gap, "neither libcrypto holds assembly".to_owned())));
    }
    let Some(of_fast) = of_fast else {
        return open(format!("{slow}'s libcrypto holds no assembly; how {fast}'s was built is not known"));
    };
    let reference = reference(gap)?;
    let facts = format!("{slow}'s libcrypto ({}) holds no assembly, {fast}'s does ({})", of_slow.version, of_fast.told);
    let twins = match gap.on_twins(TwinChange::SystemLibcrypto) {
        Twins::NotAllowed => None,
        Twins::Wanted(probe) => return Err(Standing::Wants(vec![probe])),
        Twins::Told(twins) if twins.acquits() => {
            let text =
                format!("{slow}'s libcrypto holds no assembly, but the gap is there with the system's own as well");
            return Err(Standing::RuledOut(gap.on_host(text, None)));
        }
        // Nothing but the library was exchanged: what the machines and ciphers tell is not needed any more.
        Twins::Told(twins) if twins.confirms() => return Ok(exchanged(gap, twins, facts)),
        Twins::Told(twins) => Some(twins),
    };
    let demands = demands(gap)?;
    let Some(on_fast) = demands.fast else { return open(format!("the machine of {fast} was not read")) };
    let (Some(by_slow), Some(by_fast)) = (Cpu::of(demands.slow), Cpu::of(on_fast)) else {
        return open("what the servers' processes spend is not known".to_owned());
    };
    let spent = format!(
        "a request takes {} of CPU in {slow}'s own code and {} in the kernel, in {fast}'s {} and {}",
        format_duration_ns(by_slow.user_ns),
        format_duration_ns(by_slow.system_ns),
        format_duration_ns(by_fast.user_ns),
        format_duration_ns(by_fast.system_ns)
    );
    if by_fast.system_ns <= 0.0 {
        return open(format!("{slow}'s libcrypto holds no assembly, but {spent}: how slow its CPU is is not known"));
    }
    let slower = OWN_CODE * (by_slow.system_ns / by_fast.system_ns).max(1.0);
    // That its CPU is slower as well is what nobody is to be accused for, and nothing to be acquitted by.
    let further =
        FurtherCpu { least_ns: by_slow.user_ns - slower * by_fast.user_ns, most_ns: by_slow.user_ns - by_fast.user_ns };
    let worth = CpuWorth::of(gap, reference, &demands, [&by_slow, &by_fast], further);
    let spent = format!("{spent}{}", told_waiting(gap, &demands));
    let share = worth.noteworthy(gap.on_host(
        format!("{slow}'s libcrypto holds no assembly, but {spent}"),
        Some(by_hand::cpu_time(gap, gap.slow)),
    ))?;
    // Without the CPU's instructions AES alone would be slow; without assembly ChaCha20 is as well.
    let encrypts = gap.case.smallest_body_bytes().is_some_and(|bytes| bytes >= SMALLEST_SWEEP_BYTES);
    if encrypts && gap.text(gap.slow, web::TLS_CIPHER).is_some_and(|cipher| cipher.contains("AES")) {
        match gap.look(CHACHA20) {
            Look::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
            Look::Shown(chacha) if chacha.log.low() <= gap.case.margin_log() => {
                let text =
                    format!("{slow}'s libcrypto holds no assembly, but {}: {}", CHACHA20.phrase(), gap.tell(&chacha));
                return Err(Standing::Undecided(gap.evidence(&chacha, text)));
            }
            Look::Shown(_) | Look::Missing(_) => {}
        }
    }
    let mut further = vec![gap.on_host(spent.clone(), Some(by_hand::cpu_time(gap, gap.slow)))];
    match gap.lens(gap.slow) {
        LensLook::NotAsked(probe) => return Err(Standing::Wants(vec![probe])),
        LensLook::Shown(reading) => match &reading.assembly {
            Assembly::Present => {
                let text = format!(
                    "{slow}'s libcrypto names no assembly, but masks of CPU features slow it down: it has some"
                );
                return Err(Standing::RuledOut(gap.on_lens(reading, text)));
            }
            Assembly::Absent => {
                let text = format!("{slow}'s libcrypto measured alone: no mask of CPU features changes anything");
                further.push(gap.on_lens(reading, text));
            }
            Assembly::Unknown(_) => {}
        },
        LensLook::Missing(_) => {}
    }
    further.extend(twins.map(|twins| twins.evidence).unwrap_or_default());
    let told = Told {
        summary: format!(
            "{slow}'s TLS library was built without assembly: {facts}; {spent}. The further CPU time{} is worth {:.0} % of \
             the gap.",
            worth.and_waiting(),
            100.0 * share
        ),
        remedy: remedy(gap),
        facts: vec![holds_none(gap, facts)],
        further,
    };
    Ok(fit_by_host(gap, &ENTRY, Some(share), Confidence::Likely, told))
}

/// What the lens measured, where somebody has looked.
fn measured(gap: &Gap<'_>, side: usize) -> Option<Library> {
    let LensLook::Shown(reading) = gap.lens(side) else { return None };
    let missing = match reading.assembly {
        Assembly::Absent => true,
        Assembly::Present => false,
        Assembly::Unknown(_) => return None,
    };
    let version = reading.identity.version.as_deref().map_or_else(|| "of unknown version".to_owned(), sanitize_line);
    Some(Library { missing, version, told: "masks of CPU features slow it down".to_owned() })
}

/// The standing where a twin on another libcrypto, and nothing else changed, is without the gap.
fn exchanged(gap: &Gap<'_>, twins: twins::Told<'_>, facts: String) -> Standing {
    let slow = gap.slow_name();
    let gone = twins.flip.as_ref().map_or_else(String::new, |flip| flip.percent());
    let told = Told {
        summary: format!(
            "{slow}'s TLS library was built without assembly: {facts}. With its server started anew on the system's own \
             libcrypto, {gone} of the gap is gone."
        ),
        remedy: remedy(gap),
        facts: vec![holds_none(gap, facts)],
        further: Vec::new(),
    };
    fit_by_twin(gap, &ENTRY, twins, told)
}

fn holds_none(gap: &Gap<'_>, facts: String) -> Evidence {
    gap.on_host(facts, by_hand::assembly(gap, gap.slow))
}

fn remedy(gap: &Gap<'_>) -> String {
    let (slow, pid) = (gap.slow_name(), pid(gap, gap.slow));
    format!(
        "Give {slow} a libcrypto that was built with assembly (the distribution's package; for one's own build leave out \
         `no-asm`). `grep libcrypto /proc/{pid}/maps` tells which one the server maps, `LD_LIBRARY_PATH` in its environment \
         may be why; `openssl speed -elapsed -evp aes-256-gcm` with that library tells what it costs."
    )
}

/// What is known of the libcrypto that a side's server maps.
struct Library {
    missing: bool,
    version: String,
    /// Its assembly, cut to a length that is good to read.
    told: String,
}

/// At most so many characters of a list that `;` divides, cut behind one of its parts.
fn shortened(list: &str, most: usize) -> String {
    let mut told = String::new();
    for part in list.split("; ") {
        if !told.is_empty() {
            if told.chars().count() + part.chars().count() > most {
                return told + "; ...";
            }
            told.push_str("; ");
        }
        told.extend(part.chars().take(most));
    }
    told
}

/// `None` where the machine is not read, the server maps no libcrypto, or it is one whose assembly leaves no trace that
/// would be known: only OpenSSL's modules carry their authors' line.
fn assembly(gap: &Gap<'_>, side: usize) -> Option<Library> {
    let version = gap.host_fact(side, "process.library.libcrypto.version")?;
    let assembly = gap.host_fact(side, "process.library.libcrypto.assembly")?;
    let flags = gap.host_fact(side, "process.library.libcrypto.compiler").unwrap_or_default();
    let missing = assembly.starts_with("none") || flags.contains("OPENSSL_NO_ASM");
    let told = shortened(&sanitize_line(assembly), 60);
    (version.starts_with("OpenSSL") || !missing).then(|| Library { missing, version: sanitize_line(version), told })
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_long_list_is_cut_behind_a_part() {
        assert_eq!(shortened("AES for x86_64; GHASH for x86_64", 60), "AES for x86_64; GHASH for x86_64");
        assert_eq!(shortened("AES for x86_64; GHASH for x86_64", 20), "AES for x86_64; ...");
        assert_eq!(shortened("one long word", 3), "one");
    }
}

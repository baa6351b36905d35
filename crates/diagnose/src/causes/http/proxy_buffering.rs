//! `http.proxy-buffering`: the slow side's answers go through a file before they are sent.
//!
//! A front does so with what does not fit its buffers while its client takes it more slowly than it comes, with what it is to store, and with
//! what its cache takes in, whether or not it is ever asked for again. Seen on the machine: its processes write each byte twice and
//! read it twice, of which the fast side's do neither, and making, filling and reading files takes kernel time that is worth the gap.
//! Mostly that is the price of a file, whatever its size, and not of its bytes; so a short piece of the answer (Range) tells nothing.
//!
//! What looks alike, and what splits it from that:
//!
//! * a log, however long: it is written, and never read again;
//! * tiny buffers without a file (`http.no-sendfile`): more calls, and no more bytes;
//! * each request waits for a disk (`http.sync-logging`): what is written is no answer;
//! * a proxy where the other side has none (`net.extra-hop`): it moves each byte once more by the network;
//! * what makes all kernel time dearer, or adds to it by itself: a tracer, filters, small segments, a lack of memory;
//! * a slow disk under the files, which is waited for and takes no CPU time: left open, as it may be written at leisure.
//!
//! Nothing outside takes it away, so it is likely at most.

use crate::cause::{Cause, CauseEntry, Standing, Told, fit_by_host, needs_http};
use crate::causes::likes;
use crate::evidence::by_hand;
use crate::evidence::fronts::Fronts;
use crate::evidence::machines::pid;
use crate::evidence::through_files::ThroughFiles;
use crate::evidence::worth::{Cpu, CpuWorth, FurtherCpu, acquits_nobody, demands, reference, told_kernel_time};
use crate::gap::Gap;
use duel_model::Confidence;

static ENTRY: CauseEntry = CauseEntry {
    id: "http.proxy-buffering",
    description: "the server, mostly a front, writes its answers to a file and reads them from there before it sends them",
    signature: "hosts: for each answer a quarter of its bytes or more is written to files and read again, which the fast side's \
                server does not, and kernel time worth the gap",
    at_most: "likely; possible where the server is not seen to hand requests on",
    needs_machine: true,
};

/// The most kernel time that goes with a file: making one, filling and reading 20 kB of it and giving it its name took 0.25 to 0.65 ms
/// on ext4 and a slow virtual CPU. Three times that, and a page of 4 KiB in 40 us, is beyond what a file can be accused of.
const MOST_FOR_A_FILE_NS: f64 = 2e6;
const MOST_FOR_A_BYTE_NS: f64 = 10.0;

pub(super) static CAUSE: Cause = Cause::of(&ENTRY, weigh);

fn weigh(gap: &Gap<'_>) -> Result<Standing, Standing> {
    needs_http(gap)?;
    let (slow, fast) = (gap.slow_name(), gap.fast_name());
    let reference = reference(gap)?;
    let demands = demands(gap)?;
    let calls = || Some(by_hand::calls(gap, gap.slow));
    let open = |text: String| Standing::Undecided(gap.on_host(text, calls()));
    let files = ThroughFiles::of(gap, &demands)
        .ok_or_else(|| open(format!("how many bytes the servers of {slow} and {fast} read and write is not known")))?;
    let counts = files.told(gap);
    if files.are_not_seen() {
        // Each program has its own calls, of which some are not counted: what one of them sends may be what the other one has in files.
        let [of_slow, of_fast] = [gap.slow, gap.fast].map(|side| gap.host_fact(side, "process.exe"));
        return Err(match of_slow.is_some() && of_slow == of_fast {
            true => Standing::RuledOut(gap.on_host(counts, calls())),
            false => open(format!("{counts}; they are not the same program, which may make other calls")),
        });
    }
    if !files.are_written() {
        return Err(open(counts));
    }
    if !files.are_read_again() {
        return Err(open(format!(
            "{counts}: what is written is not seen to be read again. A log is not, and of a file in memory (mmap) nobody counts it"
        )));
    }
    let hands_on = match Fronts::of(gap, &demands) {
        Ok(fronts) if fronts.slow.hands_on != fronts.fast.hands_on => {
            return Err(open(format!("{counts}; but not both of {slow} and {fast} are seen to hand requests on")));
        }
        Ok(fronts) => fronts.slow.hands_on,
        Err(Standing::Wants(probes)) => return Err(Standing::Wants(probes)),
        Err(_) => false,
    };
    let (Some(by_slow), Some(by_fast)) = (Cpu::of(demands.slow), demands.fast.and_then(Cpu::of)) else {
        return Err(open(format!("{counts}; what the servers' processes spend is not known")));
    };
    // Its own code has no more to do for a file, so a slower CPU shows there; what is below a twentieth is lost in ticks.
    let slower =
        if by_fast.user_ns > 0.05 * by_fast.all_ns() { (by_slow.user_ns / by_fast.user_ns).max(1.0) } else { 1.0 };
    let by_files_ns = MOST_FOR_A_FILE_NS + MOST_FOR_A_BYTE_NS * files.further_bytes();
    let further = FurtherCpu {
        least_ns: (by_slow.system_ns - by_fast.system_ns * slower).min(by_files_ns),
        most_ns: by_slow.system_ns - by_fast.system_ns,
    };
    let worth = CpuWorth::of(gap, reference, &demands, [&by_slow, &by_fast], further);
    let spent = told_kernel_time(gap, &demands, [&by_slow, &by_fast]);
    // Waiting for the disk under the files is not counted so.
    let share = worth.noteworthy(gap.on_host(format!("{counts}, but {spent}"), calls())).map_err(acquits_nobody)?;
    for like in likes::held_against(gap, &ENTRY) {
        like.map_err(|against| against.settles(|other| open(format!("{counts}; {other} would look the same"))))?;
    }
    let told = Told {
        summary: format!(
            "{slow} has its answers in a file before it sends them: {counts}; {spent}. The further time{} is worth {:.0} % of the gap.",
            worth.and_waiting(),
            100.0 * share
        ),
        remedy: format!(
            "See which files they are: `timeout 1 strace -f -y -e trace=openat,pwrite64,pwritev,writev,sendfile -p {}`, or `ls -l \
             /proc/PID/fd` under load. Of nginx those in `proxy_temp_path` are of answers that `proxy_buffers` and \
             `proxy_busy_buffers_size` are too small for (`fastcgi_buffers` and so on of others): make these larger, or set \
             `proxy_max_temp_file_size 0`. Those of a cache whose answers are hardly ever asked for again cost as much: look at its key, \
             and set `proxy_cache_min_uses 2`. Switch off `proxy_store`. lighttpd: `server.stream-response-body = 2`.",
            pid(gap, gap.slow)
        ),
        facts: vec![gap.on_host(counts, calls())],
        further: vec![gap.on_host(spent, Some(by_hand::cpu_time(gap, gap.slow)))],
    };
    let confidence = if hands_on { Confidence::Likely } else { Confidence::Possible };
    Ok(fit_by_host(gap, &ENTRY, Some(share), confidence, told))
}

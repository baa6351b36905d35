//! What the libcrypto within a running server works with.
//!
//! A mask that was in a server's environment when it started may no longer be there to be read: nginx overwrites it. But the
//! library has kept what followed from it. Where it keeps it is found in children of ours; there it is read from the server's
//! memory, which neither stops nor changes the server.

use crate::features;
use crate::mask::{self, Architecture};
use crate::order::{LensOrder, ServerProcess};
use crate::parent;
use crate::segments::{HEADERS_BYTES, layout};
use crate::spawn;
use crate::vector::{self, Found};
use duel_model::{Capabilities, CapabilityVector, LensTreatment, ProcessVector};
use duel_process::{FileId, Mapping, ProcessError, ProcessFiles, children, mappings, start_of, steady};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Most processes of a server that are read: workers are as many as CPUs.
const MOST_PROCESSES: usize = 64;
/// A provider of OpenSSL 3 with ciphers of its own, and a set of CPU features of its own.
const FIPS_PROVIDER: &[u8] = b"fips.so";

/// What the server of an order works with; `None` where the order has none.
pub(crate) fn of_server(order: &LensOrder, architecture: Option<Architecture>) -> Option<Capabilities> {
    let server = order.server.as_ref()?;
    let Some(architecture) = architecture else {
        return Some(Capabilities::NotRead("no set of CPU features is known for this kind of CPU".into()));
    };
    Some(read(order, server, architecture).unwrap_or_else(Capabilities::NotRead))
}

fn read(order: &LensOrder, server: &ServerProcess, architecture: Architecture) -> Result<Capabilities, String> {
    let found = in_library(order, architecture)?;
    let first = first_address(order)?;
    let reader = Reader { found: &found, first, file: &server.file, words: vector::words(architecture) };
    let mut vector = CapabilityVector {
        offset: found.offset,
        whole: found.whole.clone(),
        processes: vec![reader.read(server.pid)?],
        missing: Vec::new(),
        not_read: Vec::new(),
    };
    let workers = children(server.pid);
    for &pid in workers.iter().take(MOST_PROCESSES) {
        match reader.read(pid) {
            Ok(process) => vector.processes.push(process),
            Err(why) => vector.not_read.push(format!("process {pid}: {why}")),
        }
    }
    if workers.len() > MOST_PROCESSES {
        vector.not_read.push(format!("{} further processes", workers.len() - MOST_PROCESSES));
    }
    judged(architecture, vector)
}

/// What the sets of a server's processes say together.
fn judged(architecture: Architecture, mut vector: CapabilityVector) -> Result<Capabilities, String> {
    for process in &vector.processes {
        let pid = process.pid;
        if process.words.iter().all(|&word| word == 0) && architecture == Architecture::X86 {
            return Err(format!("the library in process {pid} has not looked at the CPU yet"));
        }
        // No mask adds what the CPU lacks; a set with more is none, or of another CPU.
        if !features::missing(architecture, &process.words, &vector.whole).is_empty() {
            return Err(format!(
                "process {pid} holds bits there that a new process lacks, so it may be something else"
            ));
        }
    }
    // What any of them lacks: the processes of a server are made to do the same.
    let common: Vec<u32> = (0..vector.whole.len())
        .map(|word| {
            vector.processes.iter().filter_map(|process| process.words.get(word)).fold(u32::MAX, |all, w| all & w)
        })
        .collect();
    vector.missing = features::missing(architecture, &vector.whole, &common);
    Ok(if vector.missing.is_empty() { Capabilities::Whole(vector) } else { Capabilities::Masked(vector) })
}

/// Loads the library without and with masks, and finds its set of features.
fn in_library(order: &LensOrder, architecture: Architecture) -> Result<Found, String> {
    let variables = |mask: Option<&str>| {
        let mut environment = mask::environment(&order.environment, LensTreatment::Whole, Some(architecture));
        if let Some(mask) = mask {
            environment.insert(architecture.variable().into(), mask.into());
        }
        spawn::variables(order, &environment).map_err(|error| error.to_string())
    };
    let whole = variables(None)?;
    let [one, other] = vector::trials(architecture).map(|trial| variables(Some(trial.mask)));
    vector::find(architecture, &whole, &[one?, other?])
}

fn first_address(order: &LensOrder) -> Result<u64, String> {
    let head =
        parent::beginning(order, HEADERS_BYTES).map_err(|error| format!("cannot read the library's file: {error}"))?;
    Ok(layout(&head).ok_or("its program headers make no sense")?.first)
}

/// Reads the set in processes that map the same library.
struct Reader<'a> {
    found: &'a Found,
    /// Where the file's first byte comes to lie.
    first: u64,
    file: &'a FileId,
    words: usize,
}

impl Reader<'_> {
    fn read(&self, pid: u32) -> Result<ProcessVector, String> {
        let files = ProcessFiles::of(pid);
        // What lies there in another program's memory would be shown to whoever reads the report.
        steady(&files, |_| Ok::<_, ProcessError>(self.of(&files))).unwrap_or_else(|error| Err(error.to_string()))
    }

    fn of(&self, files: &ProcessFiles) -> Result<ProcessVector, String> {
        let maps = files.bytes("maps").map_err(|error| refused("mappings", &error))?;
        let mappings = mappings(&maps);
        if mappings.iter().map(Mapping::name).any(|name| name == FIPS_PROVIDER) {
            return Err("it maps OpenSSL's FIPS module as well, which has a set of CPU features of its own".into());
        }
        let start = start_of(&mappings, self.file)?;
        let address = start.wrapping_sub(self.first).wrapping_add(self.found.offset);
        let mut bytes = vec![0; 4 * self.words];
        File::open(files.path("mem"))
            .and_then(|memory| memory.read_exact_at(&mut bytes, address))
            .map_err(|error| refused("memory", &error))?;
        Ok(ProcessVector { pid: files.pid(), address, words: vector::as_words(&bytes) })
    }
}

fn refused(what: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("may not read its {what}: run duel as root (or with CAP_SYS_PTRACE)")
        }
        _ => format!("cannot read its {what}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(processes: &[[u32; 4]]) -> CapabilityVector {
        let process = |(words, pid): (&[u32; 4], u32)| ProcessVector { pid, address: 0, words: words.to_vec() };
        CapabilityVector {
            offset: 0,
            whole: WHOLE.to_vec(),
            processes: processes.iter().zip(1..).map(process).collect(),
            missing: Vec::new(),
            not_read: Vec::new(),
        }
    }

    const WHOLE: [u32; 4] = [0x4f8b_ffff, 0xfffa_3203, 0xf1bf_27eb, 0x1b41_5fde];
    const MASKED: [u32; 4] = [0x4f8b_ffff, 0xfdfa_3201, 0, 0];

    #[test]
    fn one_process_without_the_features_is_enough() {
        let of = |processes: &[[u32; 4]]| judged(Architecture::X86, vector(processes));
        assert_eq!(of(&[WHOLE, WHOLE]).unwrap().has_aes(), Some(true));
        let masked = of(&[WHOLE, MASKED]).unwrap();
        assert!(matches!(masked, Capabilities::Masked(_)));
        assert_eq!(masked.has_aes(), Some(false));
        // Without the widest vectors it has the instructions for AES.
        let narrow = of(&[[WHOLE[0], WHOLE[1], WHOLE[2], 0]]).unwrap();
        assert!(matches!(&narrow, Capabilities::Masked(vector) if vector.missing.contains(&"VAES".to_owned())));
        assert_eq!(narrow.has_aes(), Some(true));
    }

    #[test]
    fn what_cannot_be_the_set_is_not_taken_for_it() {
        let why = |words| judged(Architecture::X86, vector(&[words])).unwrap_err();
        assert!(why([0; 4]).contains("has not looked"));
        assert!(why([0x1020_3040, 0x7fff_0000, 0, 1]).contains("may be something else"));
    }
}

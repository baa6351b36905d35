//! What the settings mean.

use crate::content::SECTOR;
use crate::schema::{
    ALIGN, BLOCK, COLD, COMPRESSIBILITY, DEPTH, DESTROY, DIRECT, ENGINE, FILE_ORDER, FILE_SIZE, FILES, FLUSH, FOLDERS,
    MIX, OP, READ_AHEAD, SIZE,
};
use duel_load::WorkloadError;
use duel_model::{KindPlan, Param, format_bytes};
use std::path::Path;

/// Memory that a thread's ops may take.
const MOST_BUFFER_BYTES: u64 = 1 << 30;

/// The work, as the settings want it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Work {
    pub(crate) op: Op,
    pub(crate) block: u64,
    pub(crate) depth: u32,
    pub(crate) direct: bool,
    /// `None`: as it comes.
    pub(crate) size: Option<u64>,
    pub(crate) align: u64,
    pub(crate) compressibility: f64,
    /// `None`: never.
    pub(crate) flush: Option<u64>,
    /// Share of reads.
    pub(crate) mix: f64,
    pub(crate) engine: Engine,
    pub(crate) cold: bool,
    pub(crate) read_ahead: ReadAhead,
    pub(crate) files: FileWork,
    destroy: String,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write,
    RandRead,
    RandWrite,
    RandRw,
    Rewrite,
    Fsync,
    Dsync,
    Create,
    Stat,
    ReadFile,
    Unlink,
}

/// The files that ops on whole files work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileWork {
    pub(crate) files: u32,
    pub(crate) folders: u32,
    /// Of each file.
    pub(crate) bytes: u64,
    /// Of each call.
    pub(crate) block: u64,
    pub(crate) is_random: bool,
}

impl FileWork {
    /// What a call needs. An empty file is read, too.
    pub(crate) fn buffer_bytes(self) -> usize {
        self.block.min(self.bytes.next_multiple_of(SECTOR as u64)).max(SECTOR as u64) as usize
    }

    /// Where a file's content begins among that of all files: no two have the same.
    pub(crate) fn place(self, number: u32) -> u64 {
        u64::from(number) * self.bytes.next_multiple_of(SECTOR as u64)
    }

    /// What all files hold together.
    pub(crate) fn all_bytes(self) -> u64 {
        u64::from(self.files) * self.bytes
    }
}

/// What is read ahead of reads in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAhead {
    AsSet,
    None,
    Own,
}

/// How ops are handed to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Auto,
    Uring,
    Pread,
}

impl Op {
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::RandRead | Self::Stat | Self::ReadFile)
    }

    /// Whether it works on whole files.
    pub(crate) fn is_on_files(self) -> bool {
        matches!(self, Self::Create | Self::Stat | Self::ReadFile | Self::Unlink)
    }

    pub(crate) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::RandRead | Self::RandRw | Self::Rewrite | Self::ReadFile)
    }

    pub(crate) fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw)
    }
}

impl Work {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// A combination that cannot be: a sentence for the user.
    pub(crate) fn of(kind: &KindPlan) -> Result<Self, WorkloadError> {
        let number = |param: &Param| kind.get(param).parse::<u64>().unwrap_or(0);
        let share = |param: &Param| kind.get(param).parse::<f64>().unwrap_or(0.0);
        let is_on = |param: &Param| kind.get(param) == "on";
        let block = number(&BLOCK);
        let work = Self {
            op: match kind.get(&OP) {
                "read" => Op::Read,
                "write" => Op::Write,
                "randwrite" => Op::RandWrite,
                "randrw" => Op::RandRw,
                "rewrite" => Op::Rewrite,
                "fsync" => Op::Fsync,
                "dsync" => Op::Dsync,
                "create" => Op::Create,
                "stat" => Op::Stat,
                "readfile" => Op::ReadFile,
                "unlink" => Op::Unlink,
                _ => Op::RandRead,
            },
            block,
            depth: u32::try_from(number(&DEPTH)).unwrap_or(1).max(1),
            direct: is_on(&DIRECT),
            size: Some(number(&SIZE)).filter(|size| *size > 0),
            align: if number(&ALIGN) > 0 { number(&ALIGN) } else { block },
            compressibility: share(&COMPRESSIBILITY),
            flush: Some(number(&FLUSH)).filter(|every| *every > 0),
            mix: share(&MIX),
            engine: match kind.get(&ENGINE) {
                "uring" => Engine::Uring,
                "pread" => Engine::Pread,
                _ => Engine::Auto,
            },
            cold: is_on(&COLD),
            read_ahead: match kind.get(&READ_AHEAD) {
                "none" => ReadAhead::None,
                "own" => ReadAhead::Own,
                _ => ReadAhead::AsSet,
            },
            files: FileWork {
                files: u32::try_from(number(&FILES)).unwrap_or(u32::MAX),
                folders: u32::try_from(number(&FOLDERS)).unwrap_or(u32::MAX),
                bytes: number(&FILE_SIZE),
                block,
                is_random: kind.get(&FILE_ORDER) == "random",
            },
            destroy: kind.get(&DESTROY).to_owned(),
        };
        work.fits().map_err(WorkloadError)?;
        Ok(work)
    }

    fn fits(&self) -> Result<(), String> {
        let sector = SECTOR as u64;
        if (self.op.writes() || self.op.is_on_files())
            && !(self.block.is_multiple_of(sector) && self.align.is_multiple_of(sector))
        {
            return Err(format!(
                "what is written are sectors of {sector} bytes: --block {} and --align have to be multiples of it",
                self.block
            ));
        }
        if self.block * u64::from(self.depth) > MOST_BUFFER_BYTES {
            return Err(format!(
                "--block {} at --depth {} would take {} of memory for each thread; {} at most",
                self.block,
                self.depth,
                format_bytes((self.block * u64::from(self.depth)) as f64),
                format_bytes(MOST_BUFFER_BYTES as f64)
            ));
        }
        if self.flush.is_some() && !self.op.writes() {
            return Err("--flush is for ops that write".into());
        }
        if self.op.is_on_files() {
            let set = [
                (self.direct, "--direct"),
                (self.cold, "--cold"),
                (self.size.is_some(), "--size"),
                (self.read_ahead != ReadAhead::AsSet, "--read-ahead"),
                (self.engine == Engine::Uring, "--engine uring"),
            ];
            if let Some((_, name)) = set.into_iter().find(|(is_set, _)| *is_set) {
                return Err(format!("{name} is for ops on one file, and not for create, stat, readfile and unlink"));
            }
            if self.flush.is_some() && self.op != Op::Create {
                return Err("of ops on whole files --flush is for create".into());
            }
        }
        Ok(())
    }

    /// Whether the user allowed that the content of this path is overwritten.
    pub(crate) fn may_destroy(&self, path: &Path) -> bool {
        let is_it = |named: &str| std::fs::canonicalize(named).is_ok_and(|named| named == path);
        self.destroy.split(',').filter(|named| !named.is_empty()).any(is_it)
    }
}

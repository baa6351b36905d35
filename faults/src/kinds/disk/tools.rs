//! Looks at disks by other means than duel: fio, and the devices' counters.

use super::DiskArena;
use crate::world::Volume;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// What fio did, and what it took of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) ops_per_s: f64,
    pub(crate) device_calls_per_op: f64,
    pub(crate) device_bytes_per_op: f64,
    /// Mean of what a flush takes; 0 where none was asked for.
    pub(crate) flush_us: f64,
}

impl DiskArena {
    /// Two seconds of the load, after the file has been laid out. It is removed again.
    pub(super) fn sample(&self, volume: &Volume) -> anyhow::Result<Sample> {
        let file = volume.path().join("fio");
        let laid_out = self.fio(&file, &["--create_only=1"]).and_then(|_| {
            let before = volume.calls_and_bytes()?;
            let said = self.fio(&file, &["--runtime=2", "--time_based"])?;
            let after = volume.calls_and_bytes()?;
            let job = &said["jobs"][0];
            let of = |of: &str, figure: &str| job[of][figure].as_f64().unwrap_or(0.0);
            let ops = of("read", "total_ios") + of("write", "total_ios");
            ensure!(ops > 0.0, "fio did nothing: {job}");
            Ok(Sample {
                ops_per_s: of("read", "iops") + of("write", "iops"),
                device_calls_per_op: (after.0 - before.0) / ops,
                device_bytes_per_op: (after.1 - before.1) / ops,
                flush_us: job["sync"]["lat_ns"]["mean"].as_f64().unwrap_or(0.0) / 1e3,
            })
        });
        let _ = std::fs::remove_file(&file);
        laid_out
    }

    fn fio(&self, file: &Path, words: &[&str]) -> anyhow::Result<Value> {
        let work = &self.work;
        let has = |word: &str| work.words.contains(&word);
        let after = |name: &str| work.words.iter().skip_while(|word| **word != name).nth(1);
        let (flush, compressibility) = (after("--flush"), after("--compressibility"));
        let (depth, threads) = (after("--depth"), after("-t"));
        let op = if work.op == "fsync" { "randwrite" } else { work.op };
        let mut all = vec![
            "--name=sample".to_owned(),
            format!("--filename={}", file.display()),
            format!("--size={}M", work.mib),
            format!("--bs={}", work.block_bytes),
            format!("--rw={op}"),
            format!("--direct={}", u8::from(has("--direct"))),
            // As duel's data, which compresses to no less.
            "--refill_buffers=1".to_owned(),
            "--output-format=json".to_owned(),
        ];
        all.extend(depth.map(|depth| format!("--iodepth={depth}")));
        all.extend(depth.map(|_| "--ioengine=libaio".to_owned()));
        if let Some(threads) = threads {
            all.extend([format!("--numjobs={threads}"), "--thread".to_owned(), "--group_reporting".to_owned()]);
        }
        all.extend(flush.map(|every| format!("--fsync={every}")));
        if let Some(share) = compressibility {
            all.push(format!("--buffer_compress_percentage={:.0}", 100.0 * share.parse::<f64>()?));
        }
        if work.op == "write" || compressibility.is_some() {
            // btrfs compresses nothing that is written where space was reserved before.
            all.push("--fallocate=none".to_owned());
        }
        if work.op == "fsync" {
            all.push("--fsync=1".to_owned());
        }
        all.extend(words.iter().map(|word| (*word).to_owned()));
        self.stop.go_on()?;
        let output = self.launch("fio".as_ref()).args(all).command().stdin(Stdio::null()).output()?;
        // Who was asked to stop meanwhile has nothing to say of it.
        self.stop.go_on()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "fio ended with {}: {}", output.status, said.trim());
        serde_json::from_str(&said).with_context(|| format!("fio printed {said:?}"))
    }
}

//! What lies below servers, on file systems and servers that the test makes itself.

use crate::common::{Place, free_port, measuring, skipped};
use crate::disk::{mounted, with_mounts};
use serde_json::Value;

/// Two servers that read their file from its device for each request, and the device under one of them does less per second, whoever
/// reads it: that under the loop device is capped for the group in which all work, and duel finds no limit on the one that it sees. nginx
/// takes the port of its own.
fn on_a_slower_device(ports: [u16; 2]) -> String {
    let servers = ["fast", "outer/slow"].iter().zip(ports).map(|(name, port)| {
        format!(
            "head -c 1100k /dev/urandom >$F/{name}/file
             cat >$F/{name}.conf <<END
             worker_processes 2; pid $F/{name}.pid; error_log $F/{name}.log; user root;
             events {{ worker_connections 256; }}
             http {{
                 access_log off; sendfile off; directio 4k; output_buffers 2 128k;
                 client_body_temp_path $F/{name}-1; proxy_temp_path $F/{name}-2; fastcgi_temp_path $F/{name}-3;
                 uwsgi_temp_path $F/{name}-4; scgi_temp_path $F/{name}-5;
                 server {{ listen 127.0.0.1:{port}; root $F/{name}; }}
             }}
END
             nginx -c $F/{name}.conf || exit 77\n"
        )
    });
    let [fast, slow] = ports;
    "command -v nginx >/dev/null || exit 77; C=/sys/fs/cgroup/blkio/duel-$$; mkdir $C || exit 77
     trap 'kill $(cat $F/*.pid $F/outer/*.pid); sleep 0.5; echo $$ >/sys/fs/cgroup/blkio/cgroup.procs; rmdir $C' EXIT; echo $$ >$C/cgroup.procs\n"
        .to_owned()
        + &mounted("fast", "ext4", 32, "")
        + &mounted("outer", "ext4", 64, "")
        + &mounted("outer/slow", "ext4", 32, "")
        + "losetup --direct-io=on $(losetup -n -O NAME -j $F/outer/slow.img) || exit 77
           L=$(losetup -n -O NAME -j $F/outer.img)
           echo \"$(cat /sys/class/block/${L#/dev/}/dev) 80000000\" >$C/blkio.throttle.read_bps_device || exit 77\n"
        + &servers.collect::<String>()
        + &format!(
            "sync; $D fast=http://127.0.0.1:{fast}/file slow=http://127.0.0.1:{slow}/file -c 4 -d 8s --local fast --local slow --why \
             --why-budget 45s -q --json"
        )
}

#[test]
fn a_server_whose_files_lie_on_a_slower_device_is_told_so_with_what_the_device_does() {
    if !rustix::process::geteuid().is_root() {
        return skipped("it takes root to mount file systems");
    }
    // Counters of the whole machine hold what tests beside this one do.
    let _alone = measuring();
    // A machine that gives us hardly any time makes `unknown` the right answer, so it is asked anew.
    let mut told = Vec::new();
    for _ in 0..6 {
        let place = Place::new();
        let Some(done) = with_mounts(&place, &on_a_slower_device([free_port(), free_port()])) else { return };
        let document = done.json();
        let findings = document["findings"].as_array().unwrap();
        let is_known = |found: &Value| ["disk.slow-reads", "unknown"].iter().any(|cause| found["cause"] == *cause);
        assert!(findings.iter().all(|found| is_known(found) && found["target"] != "fast"), "{findings:#?}");
        if let Some(found) = findings.iter().find(|found| found["cause"] == "disk.slow-reads") {
            assert_eq!((&found["target"], &found["confidence"]), (&"slow".into(), &"likely".into()), "{found:#}");
            let summary = found["summary"].as_str().unwrap();
            assert!(summary.contains("slow's file takes"), "{summary}");
            // Nothing is left where the files are.
            let by_hand = found["evidence"].to_string();
            assert!(by_hand.contains("/slow/file") && by_hand.contains("--direct"), "{by_hand}");
            return;
        }
        told.push(document["findings"].to_string());
    }
    panic!("it was not found in any comparison: {told:#?}");
}

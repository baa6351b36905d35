//! A shell on another machine, through the system's ssh: the user's config, keys, agent and jump hosts just work.

use crate::access::{Destination, Options};
use crate::error::HostError;
use std::ffi::OsString;

/// A host that answers nothing for three times this long is gone: ssh's `ServerAliveCountMax` is 3.
const ALIVE_INTERVAL_S: u32 = 5;

/// What comes first holds, in ssh's configuration, and the command line comes before all files: nothing of the user's can
/// undo this. Nobody is asked for anything, nothing is forwarded or learnt, and no connection is left open behind us.
const SETTINGS: [&str; 16] = [
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    // One that the user holds open is used; none is left behind.
    "ControlMaster=no",
    "ForkAfterAuthentication=no",
    "ForwardAgent=no",
    "ForwardX11=no",
    // Errors tell why it failed; a banner tells nothing.
    "LogLevel=ERROR",
    "NumberOfPasswordPrompts=0",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "ServerAliveCountMax=3",
    "StdinNull=no",
    "StrictHostKeyChecking=yes",
    "Tunnel=no",
    "VisualHostKey=no",
];

/// The arguments of an `ssh` that connects and starts the shell there.
///
/// # Errors
///
/// When a word of the shell's command would mean something to a login shell.
pub(super) fn arguments(destination: &Destination, options: &Options) -> Result<Vec<OsString>, HostError> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut set = |setting: &str| arguments.extend(["-o".into(), setting.into()]);
    SETTINGS.into_iter().for_each(&mut set);
    set(&format!("ConnectTimeout={}", options.connect_timeout.as_secs().max(1)));
    set(&format!("ServerAliveInterval={ALIVE_INTERVAL_S}"));
    if let Some(config) = &options.ssh_config {
        // It is started in another folder.
        let config = std::path::absolute(config).unwrap_or_else(|_| config.clone());
        arguments.extend(["-F".into(), config.into()]);
    }
    // The user's login shell, whatever it is, sees nothing but this; the script comes behind it.
    arguments.extend(["--".into(), destination.as_str().into(), options.remote_command()?.into()]);
    Ok(arguments)
}

/// What ssh said, as one reason: "Permission denied (publickey)". The lines are safe to show.
pub(super) fn reason(said: &[String]) -> String {
    // ssh frames its warning of a changed key with lines of @; what remains is said in the order of the lines.
    let lines: Vec<&str> = said
        .iter()
        .map(|line| line.trim().trim_start_matches("ssh: "))
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .collect();
    let any = |text: &str| lines.iter().any(|line| line.contains(text));
    let changed = any("REMOTE HOST IDENTIFICATION HAS CHANGED");
    let told = if changed { "its host key has changed since it was last known".to_owned() } else { lines.join("; ") };
    let told = if told.is_empty() { "ssh said nothing".to_owned() } else { told };
    let by_hand = changed || any("Host key verification failed");
    format!("{told}{}", if by_hand { " (connect once with ssh by hand and check the key)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::HostAccess;
    use std::path::Path;

    fn destination(name: &str) -> Destination {
        match HostAccess::ssh(name).unwrap() {
            HostAccess::Ssh(destination) => destination,
            HostAccess::Local => unreachable!("it was made for ssh"),
        }
    }

    fn with_config(config: &Path) -> Options {
        Options { ssh_config: Some(config.to_owned()), ..Options::default() }
    }

    #[test]
    fn what_ssh_said_is_told_in_one_line() {
        let said = |lines: &[&str]| reason(&lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>());
        let told = said(&["@@@@@@", "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "@@@@", "long story"]);
        assert!(told.starts_with("its host key has changed") && told.contains("by hand"), "{told}");
        let told = said(&["No ED25519 host key is known", "Host key verification failed."]);
        assert!(told.starts_with("No ED25519") && told.contains("by hand"), "{told}");
        assert_eq!(
            said(&["ssh: connect to host h port 1: Connection refused"]),
            "connect to host h port 1: Connection refused"
        );
        assert_eq!(said(&[]), "ssh said nothing");
    }

    #[test]
    fn ssh_obeys_our_settings_before_the_users() {
        let folder = tempfile::tempdir().unwrap();
        let users = folder.path().join("users");
        std::fs::write(
            &users,
            "Host web1\n  HostName 192.0.2.7\n  ForwardAgent yes\n  RemoteCommand rm -rf /\n  ControlMaster auto\n  \
             ControlPersist yes\n  StrictHostKeyChecking no\n  BatchMode no\n",
        )
        .unwrap();
        let ours = arguments(&destination("web1"), &with_config(&users)).unwrap();
        // `-G` says how ssh understands its options, and connects to nothing.
        let Ok(output) = std::process::Command::new("ssh").arg("-G").args(ours).output() else {
            println!("skipped ssh_obeys_our_settings_before_the_users: no ssh here");
            return;
        };
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for line in [
            "hostname 192.0.2.7",
            "batchmode yes",
            "forwardagent no",
            "forwardx11 no",
            "clearallforwardings yes",
            "controlmaster false",
            "stricthostkeychecking true",
            "requesttty false",
        ] {
            assert!(told.lines().any(|told| told == line), "{line}: {told}");
        }
        assert!(!told.contains("rm -rf"), "{told}");
    }
}

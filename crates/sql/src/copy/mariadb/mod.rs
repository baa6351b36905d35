//! Private copies of MariaDB: `mariadb-backup` makes them.

pub(crate) mod rewrite;
pub(crate) mod settings;
pub(crate) mod warm;

use super::keeper::Making;
use super::room::Sizes;
use super::warm::Warmth;
use super::{Maker, PROCESSES_BYTES, Settings, Source, encoded, removal_of, shown};
use crate::address::{Place, ServerAddress, SslMode};
use crate::database::Database;
use crate::kind;
use crate::machine::Runs;
use crate::wire::SqlFailure;
use duel_load::WorkloadError;
use duel_model::{CopySetting, Nanos, SECOND_NS, format_bytes, sanitize_line, shell_word};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a backup has beside the tables: what was written to the log meanwhile, and room to bring it into them.
const BESIDE_BYTES: u64 = 128 << 20;
/// Of tables that are not InnoDB's so much is copied while those who write to them wait: a second or two.
const MOST_LOCKED_BYTES: u64 = 256 << 20;
/// What the program is called, and was.
const PROGRAMS: [&str; 2] = ["mariadb-backup", "mariabackup"];

/// Tables whose rows no backup has.
const IN_MEMORY: &str = "SELECT count(*) FROM information_schema.tables WHERE engine = 'MEMORY' AND table_type = 'BASE TABLE' \
                         AND table_rows > 0 AND table_schema NOT IN ('information_schema', 'performance_schema')";

pub(super) struct MariaDb;

impl Maker for MariaDb {
    /// Names mean its own functions: others have to be called by the name of their database.
    fn asking(&self, server: &ServerAddress) -> ServerAddress {
        ServerAddress { session: Vec::new(), ..server.clone() }
    }

    fn refuses(&self, database: &mut Database, data: &Path) -> Result<Option<String>, SqlFailure> {
        let no = |why: &str| Ok(Some(why.to_owned()));
        if !database.text("SELECT version()")?.is_some_and(|version| version.to_lowercase().contains("mariadb")) {
            return no(
                "duel copies PostgreSQL and MariaDB; MySQL has other programs for backups, such as Percona XtraBackup",
            );
        }
        let set = Set::read(database)?;
        let mut counts = |name: &str| {
            let rows = database.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
            let value = rows.into_iter().next().and_then(|row| row.into_iter().nth(1).flatten());
            Ok::<_, SqlFailure>(value.is_some_and(|value| value != "0" && value != "OFF"))
        };
        // With `wsrep_on` off it keeps what it changes to itself, and may still be a member.
        if set.is_on("wsrep_on") || counts("wsrep_connected")? {
            return no(
                "its server is a member of a Galera cluster (wsrep), whose others may have to wait for it during a backup",
            );
        }
        if counts("Slaves_running")? {
            return no("its server follows another one");
        }
        if database.number(IN_MEMORY)?.is_none_or(|tables| tables > 0) {
            return no(
                "some of its tables are in its memory only (ENGINE=MEMORY), and a copy would have none of their rows",
            );
        }
        let is_elsewhere = |name: &str| set.text(name).is_some_and(|folder| !is_same_folder(data, &data.join(folder)));
        if is_elsewhere("innodb_data_home_dir")
            || is_elsewhere("innodb_undo_directory")
            || set.text("innodb_data_file_path").is_some_and(|files| files.contains('/'))
        {
            return no("some of InnoDB's files lie outside of its data folder");
        }
        let Some(found) = Files::of(data, &log_name(&set)) else { return no("its data folder cannot be read") };
        if let Some(led) = found.led {
            return Ok(Some(format!("some of its tables lie outside of its data folder: {}", shown(&led))));
        }
        if found.of_other_engines_bytes > MOST_LOCKED_BYTES {
            return Ok(Some(format!(
                "its tables of other engines than InnoDB (MyISAM, Aria; CSV, as logs in tables are) have {}, and who writes would wait while \
                 that is copied; ALTER TABLE ... ENGINE=InnoDB, or emptier logs, make a copy possible",
                format_bytes(found.of_other_engines_bytes as f64)
            )));
        }
        Ok(None)
    }

    fn program(&self, runs: &Runs) -> Result<PathBuf, String> {
        // Servers live in `sbin` or `libexec`, and what administrators call in the `bin` beside it.
        let folders = [Some(runs.programs.clone()), runs.programs.parent().map(|around| around.join("bin"))];
        let all = folders.into_iter().flatten().flat_map(|folder| PROGRAMS.map(|name| folder.join(name)));
        all.into_iter().find(|program| program.exists()).ok_or_else(|| {
            format!(
                "there is no mariadb-backup for the server in {}; the package mariadb-backup (of others MariaDB-backup) has it",
                shown(&runs.programs)
            )
        })
    }

    fn bytes(&self, database: &mut Database, data: &Path) -> Result<Option<u64>, SqlFailure> {
        let log = log_name(&Set::read(database)?);
        Ok(Files::of(data, &log).map(|found| found.bytes + BESIDE_BYTES))
    }

    fn sizes(&self, database: &mut Database, change: Option<&CopySetting>) -> Result<Sizes, WorkloadError> {
        let set = Set::read(database).map_err(|why| WorkloadError(why.text))?;
        let of = |name: &str| {
            let changed = change.filter(|change| change.name == name).map(|change| change.value.as_str());
            // Of what it does not know it takes nothing.
            let Some(text) = changed.or(set.text(name)) else { return Ok(0) };
            text.parse::<u64>().map_err(|_| {
                WorkloadError(format!("how much its {name} of '{}' is cannot be told", sanitize_line(text)))
            })
        };
        let memory = MEMORY.iter().try_fold(PROCESSES_BYTES, |sum, name| Ok(sum.saturating_add(of(name)?)));
        let files = of("innodb_log_files_in_group")?.max(1);
        Ok(Sizes { memory_bytes: memory?, log_bytes: of("innodb_log_file_size")?.saturating_mul(files) })
    }

    fn log_is_elsewhere(&self, database: &mut Database, data: &Path) -> Result<bool, SqlFailure> {
        let set = Set::read(database)?;
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let here = device(data);
        let around = |name: &str| data.join(set.text(name)?).parent().map(Path::to_owned);
        let folders = [
            set.text("innodb_log_group_home_dir").map(|folder| data.join(folder)),
            around("log_bin_basename"),
            around("general_log_file").filter(|_| set.is_on("general_log")),
            around("slow_query_log_file").filter(|_| set.is_on("slow_query_log")),
            set.text("tmpdir").map(|folders| data.join(folders.split(':').next().unwrap_or_default())),
        ];
        Ok(folders.into_iter().flatten().any(|folder| device(&folder) != here))
    }

    fn removal(&self, left: &Path, _: &Runs, as_owner: &str) -> String {
        // Whatever stands in the folder may be chosen by the owner. The number in it may be another process's by now; the one
        // with the copy's settings in its command is the copy's.
        let process = shell_word(&shown(&left.join("pid")));
        let settings = format!("--defaults-file={}", as_pattern(&shown(&left.join("settings"))));
        format!("{as_owner}pkill -KILL -F {process} -f -- {}; {}", shell_word(&settings), removal_of(left, as_owner))
    }

    fn settings(
        &self,
        database: &mut Database,
        folder: &Path,
        change: Option<&CopySetting>,
    ) -> Result<Result<Settings, WorkloadError>, SqlFailure> {
        settings::read(database, folder, change)
    }

    fn value_of(&self, setting: &str) -> String {
        format!("SELECT @@GLOBAL.{setting}")
    }

    fn making(&self, database: &mut Database, server: &ServerAddress, source: &Source) -> Result<Making, SqlFailure> {
        let own_socket = Set::read(database)?.text("socket").map_or_else(PathBuf::new, |path| source.data.join(path));
        let of_server = [&source.program, &source.runs.program, &source.data, &own_socket];
        let words = of_server.into_iter().map(|path| path.clone().into_os_string()).chain(login(server));
        Ok(Making { functions: include_str!("keeper.sh"), words: words.collect(), variables: Vec::new() })
    }

    fn socket(&self, folder: &Path) -> PathBuf {
        folder.join("socket")
    }

    fn address(&self, user: &str, database: &str, folder: &Path) -> String {
        let [user, database, socket] = [user, database, &self.socket(folder).to_string_lossy()].map(encoded);
        format!("mysql://{user}@/{database}?socket={socket}")
    }

    /// The user of the address, who sees the tables that he may load: the copy has its server's users and their passwords.
    fn reader(&self, _: &mut Database, copied: ServerAddress) -> Result<ServerAddress, SqlFailure> {
        crate::secret::remember(&copied).map_err(|why| SqlFailure::new(crate::failure::LOGIN, why.0))?;
        Ok(copied)
    }

    fn warm(&self, reader: &ServerAddress, patience_ns: Nanos) -> Warmth {
        warm::warm(reader, patience_ns)
    }

    fn rewrite(&self, user: &ServerAddress, _: &ServerAddress, patience_ns: Nanos) -> Result<(), SqlFailure> {
        rewrite::rewrite(user, patience_ns)
    }

    /// With either of these `OPTIMIZE TABLE` writes no table anew.
    fn rewriting(&self) -> &'static [&'static str] {
        &["loose_innodb_defragment = OFF", "loose_innodb_optimize_fulltext_only = OFF"]
    }

    fn unlike(&self, reader: &ServerAddress, told: &[(String, String)]) -> Result<Vec<String>, SqlFailure> {
        let (client, ..) = kind::connect(reader, 30 * SECOND_NS)?;
        settings::unlike(&mut Database::Server(Box::new(client), reader.system), told)
    }
}

/// What its memory is.
const MEMORY: [&str; 5] = [
    "innodb_buffer_pool_size",
    "innodb_log_buffer_size",
    "key_buffer_size",
    "aria_pagecache_buffer_size",
    "query_cache_size",
];

/// The variables of a server.
struct Set(Vec<Vec<Option<String>>>);

impl Set {
    fn read(database: &mut Database) -> Result<Self, SqlFailure> {
        database.rows("SHOW GLOBAL VARIABLES").map(Self)
    }

    /// What it has, if that is not empty.
    fn text(&self, name: &str) -> Option<&str> {
        let row = self.0.iter().find(|row| row.first().and_then(Option::as_deref) == Some(name))?;
        row.get(1)?.as_deref().filter(|value| !value.is_empty())
    }

    fn is_on(&self, name: &str) -> bool {
        self.text(name) == Some("ON")
    }
}

/// The name of its log for replication, which no backup has; empty where there is none.
fn log_name(set: &Set) -> String {
    let name = set.text("log_bin_basename").and_then(|path| Path::new(path).file_name());
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    number(one).is_some_and(|found| Some(found) == number(other))
}

/// A text as a pattern that nothing else is like.
fn as_pattern(text: &str) -> String {
    let one = |c: char| match c {
        '\\' | '^' => format!("\\{c}"),
        c if c.is_ascii_punctuation() && c != '/' && c != '-' && c != '_' => format!("[{c}]"),
        c => c.to_string(),
    };
    text.chars().map(one).collect()
}

/// By which options the user of the address logs in.
fn login(server: &ServerAddress) -> Vec<OsString> {
    let option = |name: &str, value: &std::ffi::OsStr| {
        let mut option = OsString::from(format!("--{name}="));
        option.push(value);
        option
    };
    let mut options = vec![option("user", server.user.as_ref())];
    match &server.place {
        Place::Unix(socket) => options.push(option("socket", socket.as_os_str())),
        Place::Tcp { host, port } => {
            options.extend([option("host", host.as_ref()), format!("--port={port}").into(), "--protocol=tcp".into()]);
        }
    }
    match server.tls {
        SslMode::Prefer => {}
        SslMode::Disable => options.push("--skip-ssl".into()),
        SslMode::Require => options.push("--ssl".into()),
        SslMode::VerifyFull => options.extend(["--ssl".into(), "--ssl-verify-server-cert".into()]),
    }
    options.extend(server.ca.as_ref().map(|ca| option("ssl-ca", ca.as_os_str())));
    options
}

/// What a data folder has of what a backup takes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Files {
    bytes: u64,
    /// What is copied while those who write wait.
    of_other_engines_bytes: u64,
    /// What leads out of it: links, and InnoDB's files that name another place.
    led: Option<PathBuf>,
}

impl Files {
    /// `None`: it cannot be read. Folders that cannot be are none of its server's.
    fn of(data: &Path, log_name: &str) -> Option<Self> {
        const NOT_TAKEN: [&str; 3] = ["ib_logfile", "ibtmp", "ib_buffer_pool"];
        // Those of the system among them: its logs may be tables. And the descriptions of all tables.
        const OTHER_ENGINES: [&str; 7] = ["MYD", "MYI", "MAD", "MAI", "ARZ", "CSV", "frm"];
        let mut found = Self::default();
        let is_log = |name: &str| {
            NOT_TAKEN.iter().any(|begin| name.starts_with(begin))
                || !log_name.is_empty() && name.strip_prefix(log_name).is_some_and(|rest| rest.starts_with('.'))
        };
        for entry in fs::read_dir(data).ok()?.flatten() {
            let Ok(of) = entry.metadata() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            if of.is_symlink() {
                found.led = Some(entry.path());
            }
            // A link is not followed: it may lead anywhere.
            if !of.is_dir() {
                found.bytes += if is_log(&name) { 0 } else { of.len() };
                continue;
            }
            for file in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let Ok(of) = file.metadata() else { continue };
                let path = file.path();
                let kind = path.extension().map(|kind| kind.to_string_lossy().into_owned()).unwrap_or_default();
                found.bytes += of.len();
                if of.is_symlink() || kind == "isl" {
                    found.led = Some(path);
                } else if OTHER_ENGINES.contains(&kind.as_str()) {
                    found.of_other_engines_bytes += of.len();
                }
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, parse};
    use crate::copy::keeper::{Keeper, Order};
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_address_of_a_copy_is_read_as_it_is_meant_and_kept_as_it_is() {
        let folder = Path::new("/var/lib/m&y/duel-copy-1-0");
        let address = MariaDb.address("u@x", "d b?", folder);
        let Ok(Address::Server(server)) = parse(&address) else { panic!() };
        assert_eq!((server.user.as_str(), server.database.as_str()), ("u@x", "d b?"));
        assert_eq!(server.place, Place::Unix(MariaDb.socket(folder)));
        assert_eq!(server.public, address);
    }

    #[test]
    fn the_user_of_the_address_logs_in_as_he_is_told_to_and_no_password_is_an_option() {
        let of = |address: &str| match parse(address) {
            Ok(Address::Server(server)) => login(&server).join(&OsString::from(" ")).into_string().unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(of("mysql://u:hunter2@h:33/db"), "--user=u --host=h --port=33 --protocol=tcp");
        assert_eq!(of("mysql://u@/db?socket=/s&sslmode=disable"), "--user=u --socket=/s --skip-ssl");
    }

    #[test]
    fn what_a_backup_takes_is_counted_and_what_leads_out_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, bytes: usize| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        };
        make("ibdata1", 1000);
        make("ib_logfile0", 9000);
        make("bin.000001", 9000);
        make("binding/t.ibd", 200);
        make("binding/m.MYD", 30);
        make("mysql/slow_log.CSV", 4);
        let found = Files::of(folder.path(), "bin").unwrap();
        assert_eq!(found, Files { bytes: 1234, of_other_engines_bytes: 34, led: None });
        make("binding/u.isl", 10);
        assert_eq!(Files::of(folder.path(), "").unwrap().led, Some(folder.path().join("binding/u.isl")));
        fs::remove_file(folder.path().join("binding/u.isl")).unwrap();
        std::os::unix::fs::symlink("/elsewhere", folder.path().join("linked")).unwrap();
        assert_eq!(Files::of(folder.path(), "").unwrap().led, Some(folder.path().join("linked")));
        assert_eq!(Files::of(&folder.path().join("none"), ""), None);
    }

    /// What becomes of a copy that this program makes, and what that program has noted in its folder. Locks are held for a second at most.
    fn made_by(backup: &str) -> (Result<(), String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let program = |name: &str, script: &str| {
            fs::write(at(name), format!("#!/bin/sh\nnotes={}\n{script}\n", at("notes").display())).unwrap();
            fs::set_permissions(at(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        program("mariadb-backup", backup);
        program("mariadbd", "echo served >>$notes; exec env --default-signal=TERM sleep 60");
        let login = ["--user=u", "--host=h"].map(PathBuf::from);
        let words = [at("mariadb-backup"), at("mariadbd"), at("data"), at("socket")].into_iter().chain(login);
        let making = Making {
            functions: include_str!("keeper.sh"),
            words: words.map(PathBuf::into_os_string).collect(),
            variables: vec![("most_held", "1".into())],
        };
        let order = Order {
            folder: &at("copy"),
            owner: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            cpus: None,
            making: &making,
            password: "hunter2",
            settings: &[],
            most_bytes: u64::MAX,
        };
        let keeper = Keeper::start(&order).unwrap();
        let made = keeper.until_copied(&order, &AtomicBool::new(false), &|_| {}).map_err(|why| why.0);
        drop(keeper);
        assert!(!at("copy").exists());
        (made, fs::read_to_string(at("notes")).unwrap_or_default())
    }

    /// Makes what it is told to, as the program for backups does.
    const MAKES: &str =
        "for word; do case $word in --target-dir=*) mkdir -p \"${word#*=}\"; made=${word#*=};; esac; done";

    #[test]
    fn a_password_is_handed_on_only_where_the_owner_is_not_let_in_and_as_no_argument() {
        let note = "printf '%s %s\\n' \"$*\" \"$MYSQL_PWD\" | sed 's/.*--ftwrl-wait-timeout=[0-9]* //' >>$notes";
        let (made, notes) = made_by(&format!("{note}\n{MAKES}"));
        assert_eq!(made, Ok(()));
        let first = notes.lines().next().unwrap();
        assert!(first.starts_with("--user=") && first.contains("--socket=") && !notes.contains("hunter2"), "{notes}");
        let refuses = "case \"$*\" in *--socket=*) echo 'Failed to connect to MariaDB server: no' >&2; exit 1;; esac";
        let (made, notes) = made_by(&format!("{note}\n{refuses}\n{MAKES}"));
        assert_eq!(made, Ok(()));
        let lines: Vec<&str> = notes.lines().collect();
        assert_eq!(lines[1], "--user=u --host=h hunter2");
        // Making it ready takes none, nor does its server.
        assert_eq!(notes.matches("hunter2").count(), 1, "{notes}");
    }

    #[test]
    fn why_there_is_no_copy_is_said_and_nothing_is_served_that_leads_to_the_servers_own_files() {
        let refuses = "echo '[00] 2026-01-01 00:00:00 Error: missing required privilege RELOAD on *.*' >&2; exit 1";
        let (made, notes) = made_by(refuses);
        let why = made.unwrap_err();
        assert!(why.contains("GRANT RELOAD, PROCESS, REPLICATION CLIENT ON *.* TO"), "{why}");
        assert!(why.ends_with("mariadb-backup says: Error: missing required privilege RELOAD on *.*"), "{why}");
        assert_eq!(notes, "");
        let copies = "echo '[01] 2026-01-01 00:00:00 Copying ./db/errors.ibd to x' >&2";
        let (made, _) = made_by(&format!("{copies}; echo 'InnoDB: [ERROR] no' >&2; echo over >&2; exit 1"));
        assert_eq!(made.unwrap_err(), "mariadb-backup says: InnoDB: [ERROR] no");
        // It warns, and goes on with the files of one server and the log of another one.
        let warns = "echo \"Warning: option 'datadir' has different values:\" >&2";
        let (made, notes) = made_by(&format!("{MAKES}\n{warns}"));
        assert_eq!(made.unwrap_err(), "another server than that of the data folder answers there");
        assert_eq!(notes, "");
        let holds = "echo '[00] 2026-01-01 00:00:00 Acquired locks for BACKUP STAGE BLOCK_DDL' >&2; exec sleep 60";
        let why = made_by(&format!("{MAKES}\n{holds}")).0.unwrap_err();
        assert!(
            why.starts_with("its backup waited for locks, or held them, for more than 1 s, and was ended"),
            "{why}"
        );
        for leads in [": >$made/t.isl", "mkdir $made/db; ln -s /elsewhere $made/db/t.MYD"] {
            let (made, notes) = made_by(&format!("{MAKES}\n{leads}"));
            let why = made.unwrap_err();
            assert!(why.starts_with("some of its tables lie outside of its data folder: "), "{why}");
            assert_eq!(notes, "", "no server is started on it");
        }
    }

    #[test]
    fn what_removes_a_copy_ends_its_server_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("a b;$(touch x)'`/duel-copy-4194305-3");
        fs::create_dir_all(left.join("data")).unwrap();
        let started = |word: &str| {
            let mut command = std::process::Command::new("sh");
            command
                .args(["-c", "while :; do read -r _; done", word])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut server = started(&format!("--defaults-file={}", left.join("settings").display()));
        fs::write(left.join("pid"), format!("{}\n", server.id())).unwrap();
        let runs = Runs { program: "/x/mariadbd".into(), programs: "/x".into(), owner: (7, 7), cpus: None };
        let line = MariaDb.removal(&left, &runs, "");
        assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&server.wait().unwrap()), Some(9));
        assert!(!left.exists() && left.parent().unwrap().exists());
        // Another process that has got the number.
        fs::create_dir_all(&left).unwrap();
        let mut other = started("--defaults-file=/etc/mysql/my.cnf");
        fs::write(left.join("pid"), format!("{}\n", other.id())).unwrap();
        assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
        assert_eq!(other.try_wait().unwrap(), None, "it lives");
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(MariaDb.removal(&left, &runs, "setpriv --reuid=7 -- ").matches("setpriv --reuid=7 -- ").count(), 2);
    }
}

//! Who and when: identities of runs, and what made them.

use duel_model::{Plan, Run, RunStatus, Versions};

/// A new run's identity: sortable by time, and different for runs that start within the same second.
pub fn new_run_id() -> String {
    let unix_ms = duel_load::unix_ms();
    let seconds = unix_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    // Process and sub-second time: two runs of one process cannot start within a microsecond.
    let unique = (u64::from(std::process::id()) << 20) ^ (duel_load::monotonic_ns() / 1000);
    let tail = (unique.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) & 0xf_ffff;
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}-{tail:05x}", second / 3600, second / 60 % 60, second % 60)
}

/// A run that has nothing yet but its plan.
pub(crate) fn new_run(plan: &Plan) -> Run {
    Run {
        id: new_run_id(),
        started_unix_ms: duel_load::unix_ms(),
        plan: plan.redacted(),
        versions: versions(),
        slots: Vec::new(),
        first_contact: vec![None; plan.targets.len()],
        status: RunStatus::Complete,
        doubts: Vec::new(),
        hosts: Vec::new(),
        explanation: None,
        waiting: None,
    }
}

fn versions() -> Versions {
    let system = rustix::system::uname();
    let text = |value: &std::ffi::CStr| duel_model::sanitize_line(&value.to_string_lossy());
    Versions {
        duel: env!("CARGO_PKG_VERSION").to_owned(),
        os: format!("{} {}", text(system.sysname()), text(system.release())),
        arch: std::env::consts::ARCH.to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        tls: crate::kinds::TLS_LIBRARY.to_owned(),
        event_loop: duel_load::MECHANISM.to_owned(),
    }
}

/// Date of a day counted from 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible
/// low-level date algorithms").
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates_beyond_2038() {
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(20_777), (2026, 11, 20));
        assert_eq!(civil_from_days(24_855), (2038, 1, 19));
        assert_eq!(civil_from_days(47_541), (2100, 3, 1));
    }

    #[test]
    fn identities_sort_by_time_and_differ() {
        let (first, second) = (new_run_id(), new_run_id());
        assert_eq!(first.len(), "20261120-233200-7f3a1".len());
        assert!(first[..15] <= second[..15]);
    }
}

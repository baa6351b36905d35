//! Fuzzers' entry to what a management controller answers; see `crate::fuzzing`.

use super::facts::{self, Sheet};
use super::visit::{linked, members};
use serde_json::Value;

/// Any JSON document in the place of any resource.
pub(crate) fn redfish(data: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(data) else { return };
    let mut sheet = Sheet::default();
    let resources = [facts::thermal, facts::power, facts::thermal_metrics, facts::fan, facts::environment];
    for read in resources {
        read(&document, &mut sheet);
    }
    facts::power_supply(&document, Some(&document), &mut sheet);
    for path in members(&document).chain(linked(&document, "Thermal")) {
        assert!(path.starts_with("/redfish/"), "a link leads elsewhere: {path}");
    }
    for (key, known) in &sheet.finish().0 {
        let shown = format!("{key}{}", known.text().unwrap_or_default());
        assert!(!shown.chars().any(char::is_control), "a control character would reach a terminal: {shown:?}");
    }
}

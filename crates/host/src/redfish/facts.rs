//! From Redfish resources to facts: pure functions that survive any document.
//!
//! Resources by DMTF's names (DSP0268): `Thermal` and `Power`, deprecated and everywhere; `ThermalMetrics`, `Fan`,
//! `PowerSupply` with `PowerSupplyMetrics` and `EnvironmentMetrics`, which follow them.

use duel_model::{Facts, Known, sanitize_line};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most facts of a controller.
const MOST_FACTS: usize = 512;
/// Most entries of one list.
const MOST_ENTRIES: usize = 128;
/// Longest name of a sensor.
const LONGEST_NAME: usize = 64;

/// The key under which it is noted that a part could not be read; where nothing could, it is `redfish`.
pub(super) const PART: &str = "redfish.part";

/// Facts while they are found.
#[derive(Debug, Default)]
pub(super) struct Sheet(BTreeMap<String, Known>);

impl Sheet {
    /// How many facts there are, besides what could not be read.
    pub(super) fn found(&self) -> usize {
        self.0.len() - usize::from(self.0.contains_key(PART))
    }

    /// Why a part of what there is could not be read.
    pub(super) fn missing_part(&self) -> Option<String> {
        match self.0.get(PART) {
            Some(Known::Unavailable(why)) => Some(why.clone()),
            _ => None,
        }
    }

    /// The first one stands.
    pub(super) fn note(&mut self, key: &str, known: Known) {
        if self.0.len() < MOST_FACTS {
            self.0.entry(key.to_owned()).or_insert(known);
        }
    }

    pub(super) fn finish(self) -> Facts {
        Facts(self.0)
    }

    /// A reading, or that the controller knows of the sensor and has none.
    fn reading(&mut self, key: &str, reading: Option<&Value>, state: &str) {
        let known = match reading.and_then(Value::as_f64).filter(|value| value.is_finite()) {
            Some(value) => Known::from(number(value)),
            None if state.is_empty() => Known::Unavailable("the controller tells no reading".to_owned()),
            None => Known::Unavailable(sanitize_line(&format!("the controller tells no reading ({state})"))),
        };
        self.note(key, known);
    }

    /// A name for what is listed: two of one name, on two chassis for instance, stay two.
    fn named(&self, kind: &str, entry: &Value, names: &[&str]) -> String {
        let name =
            names.iter().find_map(|name| text(entry, name)).map_or_else(|| "unnamed".to_owned(), |text| key_of(&text));
        let prefix = |number: usize| match number {
            1 => format!("redfish.{kind}.{name}"),
            _ => format!("redfish.{kind}.{name}#{number}"),
        };
        let is_free = |prefix: &str| {
            let prefix = format!("{prefix}.");
            self.0.range(prefix.clone()..).next().is_none_or(|(key, _)| !key.starts_with(&prefix))
        };
        (1..=MOST_ENTRIES).map(prefix).find(|prefix| is_free(prefix)).unwrap_or_else(|| prefix(0))
    }
}

/// `Thermal`: all fans and temperatures of a chassis.
pub(super) fn thermal(thermal: &Value, sheet: &mut Sheet) {
    for fan in entries(thermal, "Fans") {
        // `FanName` until Redfish 2017.1.
        let prefix = sheet.named("fan", fan, &["Name", "FanName", "MemberId"]);
        let unit = match text(fan, "ReadingUnits").as_deref() {
            Some("Percent") => "percent",
            _ => "rpm",
        };
        let reading = fan.get("Reading").or_else(|| fan.get("ReadingRPM"));
        sheet.reading(&format!("{prefix}.{unit}"), reading, &state(fan));
        ill(fan, &prefix, sheet);
    }
    for sensor in entries(thermal, "Temperatures") {
        let prefix = sheet.named("temperature", sensor, &["Name", "MemberId"]);
        sheet.reading(&format!("{prefix}.c"), sensor.get("ReadingCelsius"), &state(sensor));
        ill(sensor, &prefix, sheet);
    }
}

/// `Power`: what a chassis draws, and its power supplies.
pub(super) fn power(power: &Value, sheet: &mut Sheet) {
    for control in entries(power, "PowerControl") {
        let prefix = sheet.named("power", control, &["Name", "MemberId"]);
        sheet.reading(&format!("{prefix}.watts"), control.get("PowerConsumedWatts"), &state(control));
        // A limit that is in force makes a machine slow, and says so nowhere else.
        if let Some(limit) = control.get("PowerLimit").and_then(|limit| limit.get("LimitInWatts")?.as_f64()) {
            sheet.note(&format!("{prefix}.limit_watts"), Known::from(number(limit)));
        }
    }
    for supply in entries(power, "PowerSupplies") {
        power_supply(supply, None, sheet);
    }
}

/// `PowerSupply`, with its `PowerSupplyMetrics` where they are a resource of their own.
pub(super) fn power_supply(supply: &Value, metrics: Option<&Value>, sheet: &mut Sheet) {
    let prefix = sheet.named("psu", supply, &["Name", "MemberId", "Id"]);
    let known = match state(supply) {
        state if state.is_empty() => Known::Unavailable("the controller does not tell its state".to_owned()),
        state => Known::from(state),
    };
    sheet.note(&format!("{prefix}.state"), known);
    let own = |names: &[&str]| names.iter().find_map(|name| supply.get(name)?.as_f64());
    let measured = |name: &str| metrics?.get(name)?.get("Reading")?.as_f64();
    for (end, value) in [
        ("capacity_watts", own(&["PowerCapacityWatts"])),
        ("input_watts", own(&["PowerInputWatts"]).or_else(|| measured("InputPowerWatts"))),
        ("output_watts", own(&["PowerOutputWatts", "LastPowerOutputWatts"]).or_else(|| measured("OutputPowerWatts"))),
    ] {
        if let Some(value) = value {
            sheet.note(&format!("{prefix}.{end}"), Known::from(number(value)));
        }
    }
}

/// `ThermalMetrics`: the temperatures of a chassis.
pub(super) fn thermal_metrics(metrics: &Value, sheet: &mut Sheet) {
    for sensor in entries(metrics, "TemperatureReadingsCelsius") {
        let prefix = sheet.named("temperature", sensor, &["DeviceName", "PhysicalContext", "DataSourceUri"]);
        sheet.reading(&format!("{prefix}.c"), sensor.get("Reading"), &state(sensor));
    }
    let summary = metrics.get("TemperatureSummaryCelsius").and_then(Value::as_object);
    for (place, reading) in summary.into_iter().flatten().take(MOST_ENTRIES).filter(|(_, reading)| reading.is_object())
    {
        sheet.reading(&format!("redfish.temperature.{}.c", key_of(place)), reading.get("Reading"), "");
    }
}

/// `Fan`: one fan.
pub(super) fn fan(fan: &Value, sheet: &mut Sheet) {
    let prefix = sheet.named("fan", fan, &["Name", "Id"]);
    let speed = fan.get("SpeedPercent").unwrap_or(&Value::Null);
    match speed.get("SpeedRPM") {
        Some(rpm) if rpm.is_number() => sheet.reading(&format!("{prefix}.rpm"), Some(rpm), ""),
        _ => sheet.reading(&format!("{prefix}.percent"), speed.get("Reading"), &state(fan)),
    }
    ill(fan, &prefix, sheet);
}

/// `EnvironmentMetrics`: what a chassis draws, where there is no `Power`.
pub(super) fn environment(metrics: &Value, sheet: &mut Sheet) {
    if let Some(power) = metrics.get("PowerWatts").filter(|power| power.is_object()) {
        let prefix = sheet.named("power", metrics, &["Name"]);
        sheet.reading(&format!("{prefix}.watts"), power.get("Reading"), "");
    }
    if let Some(limit) = metrics.get("PowerLimitWatts").and_then(|limit| limit.get("SetPoint")?.as_f64()) {
        let prefix = sheet.named("power_limit", metrics, &["Name"]);
        sheet.note(&format!("{prefix}.watts"), Known::from(number(limit)));
    }
}

/// What is well needs no words; what is not, may be why a machine is slow.
fn ill(entry: &Value, prefix: &str, sheet: &mut Sheet) {
    let health = entry.get("Status").and_then(|status| text(status, "Health"));
    if let Some(health) = health.filter(|health| health != "OK") {
        sheet.note(&format!("{prefix}.health"), Known::from(health));
    }
}

/// `Enabled, health OK`; empty where nothing is told.
fn state(entry: &Value) -> String {
    let Some(status) = entry.get("Status") else { return String::new() };
    let health = text(status, "Health").map(|health| format!("health {health}"));
    [text(status, "State"), health].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a list holds, but for places where nothing is plugged in.
fn entries<'a>(resource: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = resource.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_there = |entry: &&Value| {
        entry.is_object() && entry.get("Status").and_then(|status| text(status, "State")).as_deref() != Some("Absent")
    };
    list.iter().take(MOST_ENTRIES).filter(is_there)
}

/// A text property, safe to show; `None` if it is empty.
fn text(of: &Value, name: &str) -> Option<String> {
    let text = sanitize_line(of.get(name)?.as_str()?.trim());
    (!text.is_empty()).then_some(text)
}

/// A part of a key: no dots, which part keys, and nothing that is not seen.
fn key_of(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_graphic() && c != '.' { c } else { '_' };
    name.chars().take(LONGEST_NAME).map(safe).collect()
}

/// To a thousandth, without zeros that say nothing.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn facts_of(read: fn(&Value, &mut Sheet), document: &Value) -> Facts {
        let mut sheet = Sheet::default();
        read(document, &mut sheet);
        sheet.finish()
    }

    #[test]
    fn fans_and_temperatures_of_a_chassis() {
        let document = json!({
            "Fans": [
                {"Name": "Fan 1", "Reading": 2100, "ReadingUnits": "RPM", "Status": {"State": "Enabled", "Health": "OK"}},
                {"FanName": "Fan 2", "Reading": 40, "ReadingUnits": "Percent", "Status": {"State": "Enabled", "Health": "Critical"}},
                {"Name": "Fan 1", "Reading": 2200},
                {"Name": "Fan 3", "Status": {"State": "Absent"}},
                {"Name": "Fan 4", "Reading": null, "Status": {"State": "Disabled"}},
            ],
            "Temperatures": [
                {"Name": "CPU1 Temp", "ReadingCelsius": 41.5, "Status": {"State": "Enabled", "Health": "OK"}},
                {"MemberId": "7", "ReadingCelsius": -3},
            ],
        });
        let facts = facts_of(thermal, &document);
        let value = |key: &str| facts.text(key).map(str::to_owned);
        assert_eq!(value("redfish.fan.Fan_1.rpm").as_deref(), Some("2100"));
        assert_eq!(value("redfish.fan.Fan_1#2.rpm").as_deref(), Some("2200"));
        assert_eq!(value("redfish.fan.Fan_2.percent").as_deref(), Some("40"));
        assert_eq!(value("redfish.fan.Fan_2.health").as_deref(), Some("Critical"));
        assert_eq!(value("redfish.temperature.CPU1_Temp.c").as_deref(), Some("41.5"));
        assert_eq!(value("redfish.temperature.7.c").as_deref(), Some("-3"));
        assert_eq!(
            facts.0["redfish.fan.Fan_4.rpm"],
            Known::Unavailable("the controller tells no reading (Disabled)".into()),
            "no reading is not zero"
        );
        assert_eq!(facts.0.len(), 7, "{facts:?}");
    }

    #[test]
    fn power_and_its_supplies() {
        let document = json!({
            "PowerControl": [{"Name": "System Power", "PowerConsumedWatts": 344, "PowerLimit": {"LimitInWatts": 400}}],
            "PowerSupplies": [
                {"Name": "PSU 1", "Status": {"State": "Enabled", "Health": "OK"}, "PowerCapacityWatts": 800, "LastPowerOutputWatts": 172.25},
                {"Name": "PSU 2", "Status": {"State": "UnavailableOffline", "Health": "Warning"}},
            ],
        });
        let facts = facts_of(power, &document);
        assert_eq!(facts.number("redfish.power.System_Power.watts"), Some(344.0));
        assert_eq!(facts.number("redfish.power.System_Power.limit_watts"), Some(400.0));
        assert_eq!(facts.text("redfish.psu.PSU_1.state"), Some("Enabled, health OK"));
        assert_eq!(facts.text("redfish.psu.PSU_1.output_watts"), Some("172.25"));
        assert_eq!(facts.text("redfish.psu.PSU_2.state"), Some("UnavailableOffline, health Warning"));
        assert!(!facts.0.contains_key("redfish.psu.PSU_2.output_watts"));
    }

    #[test]
    fn the_newer_resources_tell_the_same() {
        let metrics = json!({
            "TemperatureReadingsCelsius": [{"Reading": 44, "DeviceName": "CPU1"}],
            "TemperatureSummaryCelsius": {"Intake": {"Reading": 24.8}, "Exhaust": {"Reading": null}, "Ambient": null},
        });
        let facts = facts_of(thermal_metrics, &metrics);
        assert_eq!(facts.text("redfish.temperature.CPU1.c"), Some("44"));
        assert_eq!(facts.text("redfish.temperature.Intake.c"), Some("24.8"));
        assert!(facts.0["redfish.temperature.Exhaust.c"].text().is_none() && facts.0.len() == 3, "{facts:?}");

        let facts = facts_of(fan, &json!({"Name": "Bay 1", "SpeedPercent": {"Reading": 45, "SpeedRPM": 2200}}));
        assert_eq!(facts.text("redfish.fan.Bay_1.rpm"), Some("2200"));
        let facts = facts_of(fan, &json!({"Id": "2", "SpeedPercent": {"Reading": 45}}));
        assert_eq!(facts.text("redfish.fan.2.percent"), Some("45"));

        let mut sheet = Sheet::default();
        let supply = json!({"Id": "Bay1", "Name": "Supply", "Status": {"State": "Enabled"}});
        let metrics = json!({"InputPowerWatts": {"Reading": 937.4}, "OutputPowerWatts": {"Reading": 800}});
        power_supply(&supply, Some(&metrics), &mut sheet);
        let facts = sheet.finish();
        assert_eq!(facts.text("redfish.psu.Supply.input_watts"), Some("937.4"));
        assert_eq!(facts.text("redfish.psu.Supply.state"), Some("Enabled"));

        let metrics = json!({"Name": "Box", "PowerWatts": {"Reading": 374}, "PowerLimitWatts": {"SetPoint": 500}});
        assert_eq!(facts_of(environment, &metrics).text("redfish.power.Box.watts"), Some("374"));
    }

    #[test]
    fn hostile_documents_are_bounded_and_made_safe() {
        let many: Vec<Value> = (0..100_000).map(|n| json!({"Name": format!("f{n}"), "Reading": n})).collect();
        let facts = facts_of(thermal, &json!({"Fans": many, "Temperatures": "none"}));
        assert!(facts.0.len() <= MOST_ENTRIES);
        let evil = "\u{1b}[2J\u{202e}x.y\n".repeat(50);
        let document = json!({"Fans": [{"Name": evil, "Reading": 1e308, "Status": {"State": evil, "Health": evil}}]});
        for (key, known) in facts_of(thermal, &document).0 {
            let shown = format!("{key} {known:?}");
            assert!(!shown.contains(['\u{1b}', '\u{202e}', '\n']) && key.len() < 100, "{shown:?}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let names =
            ["Fans", "Temperatures", "Name", "Reading", "Status", "State", "Health", "PowerControl", "SpeedPercent"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 64, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(prop::sample::select(names.to_vec()), inner, 0..6).prop_map(|map| {
                    Value::Object(map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_document_is_survived(document in any_json()) {
            let mut sheet = Sheet::default();
            for read in [thermal, power, thermal_metrics, fan, environment] {
                read(&document, &mut sheet);
            }
            power_supply(&document, Some(&document), &mut sheet);
            for (key, known) in &sheet.finish().0 {
                let shown = format!("{key}{known:?}");
                prop_assert!(key.starts_with("redfish.") && !shown.contains(['\u{1b}', '\n']), "{}", shown);
            }
        }
    }
}

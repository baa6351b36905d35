//! A round through a controller's resources.

use super::client::Client;
use super::facts::{self, Sheet};
use super::{Redfish, shown};
use duel_model::{Facts, Known, sanitize_line};
use serde_json::Value;
use std::time::Instant;

/// Most chassis that are asked: a blade enclosure has some 16.
const MOST_CHASSIS: usize = 16;
/// Most members of a collection that are asked one by one.
const MOST_MEMBERS: usize = 32;
/// Most requests to a controller. A server with eight fans and two power supplies, each a resource of its own, takes 20.
const MOST_REQUESTS: usize = 96;

/// Everything that the controller tells, now.
pub(super) fn facts(redfish: &Redfish) -> Facts {
    let mut sheet = Sheet::default();
    let address = shown(&redfish.address);
    let client = Client::new(&redfish.address, redfish.credentials.as_ref(), &redfish.trust, redfish.request_timeout);
    let ends = Instant::now() + redfish.patience;
    let visited = client.and_then(|client| Visit { client, ends, requests: 0 }.all(&mut sheet));
    let missing = visited.err().or_else(|| sheet.missing_part());
    if sheet.found() == 0 {
        sheet = Sheet::default();
        let why = missing.unwrap_or_else(|| "it tells of no fan, temperature or power supply".to_owned());
        sheet.note("redfish", Known::Unavailable(sanitize_line(&format!("{address}: {why}"))));
    } else if let Some(why) = missing {
        sheet.note(facts::PART, Known::Unavailable(sanitize_line(&why)));
    }
    sheet.finish()
}

/// One round through a controller's resources.
struct Visit {
    client: Client,
    ends: Instant,
    requests: usize,
}

impl Visit {
    fn all(&mut self, sheet: &mut Sheet) -> Result<(), String> {
        let chassis = self.get("/redfish/v1/Chassis")?;
        for path in members(&chassis).take(MOST_CHASSIS) {
            let Some(chassis) = self.part(&path, sheet)? else { continue };
            let told = sheet.found();
            // One resource tells all; newer controllers have a collection instead, and some have both.
            self.link(&chassis, "Thermal", sheet, facts::thermal)?;
            if sheet.found() == told {
                self.thermal_subsystem(&chassis, sheet)?;
            }
            let told = sheet.found();
            self.link(&chassis, "Power", sheet, facts::power)?;
            if sheet.found() == told {
                self.power_subsystem(&chassis, sheet)?;
                self.link(&chassis, "EnvironmentMetrics", sheet, facts::environment)?;
            }
        }
        Ok(())
    }

    fn thermal_subsystem(&mut self, chassis: &Value, sheet: &mut Sheet) -> Result<(), String> {
        let Some(path) = linked(chassis, "ThermalSubsystem") else { return Ok(()) };
        let Some(subsystem) = self.part(&path, sheet)? else { return Ok(()) };
        self.link(&subsystem, "ThermalMetrics", sheet, facts::thermal_metrics)?;
        self.each(&subsystem, "Fans", sheet, |_, fan, sheet| {
            facts::fan(fan, sheet);
            Ok(())
        })
    }

    fn power_subsystem(&mut self, chassis: &Value, sheet: &mut Sheet) -> Result<(), String> {
        let Some(path) = linked(chassis, "PowerSubsystem") else { return Ok(()) };
        let Some(subsystem) = self.part(&path, sheet)? else { return Ok(()) };
        self.each(&subsystem, "PowerSupplies", sheet, |visit, supply, sheet| {
            let metrics = match linked(supply, "Metrics") {
                Some(path) => visit.part(&path, sheet)?,
                None => None,
            };
            facts::power_supply(supply, metrics.as_ref(), sheet);
            Ok(())
        })
    }

    /// Follows a link, where there is one, and reads what it leads to.
    fn link(&mut self, of: &Value, name: &str, sheet: &mut Sheet, read: fn(&Value, &mut Sheet)) -> Result<(), String> {
        if let Some(path) = linked(of, name)
            && let Some(part) = self.part(&path, sheet)?
        {
            read(&part, sheet);
        }
        Ok(())
    }

    /// Reads each member of a linked collection.
    fn each(
        &mut self,
        of: &Value,
        name: &str,
        sheet: &mut Sheet,
        mut read: impl FnMut(&mut Self, &Value, &mut Sheet) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(path) = linked(of, name) else { return Ok(()) };
        let Some(collection) = self.part(&path, sheet)? else { return Ok(()) };
        for path in members(&collection).take(MOST_MEMBERS) {
            if let Some(member) = self.part(&path, sheet)? {
                read(self, &member, sheet)?;
            }
        }
        Ok(())
    }

    /// A resource that the others can do without: that it is missing is noted, and is not that nothing was read. An error is
    /// the end of the visit.
    fn part(&mut self, path: &str, sheet: &mut Sheet) -> Result<Option<Value>, String> {
        if self.requests >= MOST_REQUESTS {
            return Err(format!("not read to the end: it has more than {MOST_REQUESTS} resources"));
        }
        if Instant::now() >= self.ends {
            return Err("not read to the end: it answers too slowly".to_owned());
        }
        match self.get(path) {
            Ok(part) => Ok(Some(part)),
            Err(why) => {
                sheet.note(facts::PART, Known::Unavailable(sanitize_line(&why)));
                Ok(None)
            }
        }
    }

    fn get(&mut self, path: &str) -> Result<Value, String> {
        self.requests += 1;
        let left = self.ends.saturating_duration_since(Instant::now());
        self.client.get(path, left)
    }
}

/// Where a property leads: `{"@odata.id": "/redfish/v1/..."}`.
pub(super) fn linked(of: &Value, name: &str) -> Option<String> {
    own_path(of.get(name)?.get("@odata.id")?.as_str()?)
}

/// Where the members of a collection are.
pub(super) fn members(collection: &Value) -> impl Iterator<Item = String> {
    let members = collection.get("Members").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    members.iter().filter_map(|member| own_path(member.get("@odata.id")?.as_str()?))
}

/// A path of the controller's own: nothing that could name another host, or break out of a request's first line.
fn own_path(path: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-._~%()'!*+,;=:@$&".contains(c);
    let is_own = path.starts_with("/redfish/v1/") && !path.contains("//") && !path.contains("/..");
    (is_own && path.len() <= 512 && path.chars().all(plain)).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_controllers_own_resources_are_followed() {
        for good in ["/redfish/v1/Chassis/1U", "/redfish/v1/Chassis/a%20b/Thermal"] {
            assert!(own_path(good).is_some(), "{good}");
        }
        for bad in [
            "https://evil/redfish/v1/",
            "//evil/redfish/v1/",
            "/redfish/v1//evil",
            "/redfish/v1/../../etc",
            "/redfish/v1/a b",
            "/redfish/v1/a\r\nHost: evil",
            "/redfish/v1/a?x",
            "/redfish/v1/a#x",
            "/other",
        ] {
            assert!(own_path(bad).is_none(), "{bad}");
        }
        assert!(own_path(&format!("/redfish/v1/{}", "x".repeat(600))).is_none());
        let chassis =
            json!({"Thermal": {"@odata.id": 7}, "Power": "x", "Members": [{}, {"@odata.id": "/redfish/v1/x"}, 3]});
        assert_eq!(
            (linked(&chassis, "Thermal"), linked(&chassis, "Power"), linked(&chassis, "none")),
            (None, None, None)
        );
        assert_eq!(members(&chassis).collect::<Vec<_>>(), ["/redfish/v1/x"]);
    }
}

//! Management controllers of the tests' own: HTTPS servers that tell what real ones tell, and others that misbehave.

#![cfg(feature = "redfish")]

use duel_host::{Password, Redfish, RedfishTrust};
use duel_model::{Facts, Known};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a controller answers to a path.
type Answers = fn(&str) -> Answer;

enum Answer {
    Json(String),
    Status(u16),
    Redirect(String),
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// A body that never ends.
    Endless,
    /// Nothing, for as long as the test lasts.
    Nothing,
}

/// A controller on a port of its own.
struct Controller {
    port: u16,
    certificate: Vec<u8>,
    heads: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
}

impl Controller {
    fn start(answers: Answers) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().to_vec();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let (config, listener) = (Arc::new(config), TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let port = listener.local_addr().unwrap().port();
        let (heads, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (told, over) = (Arc::clone(&heads), Arc::clone(&is_over));
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (config, told, over) = (Arc::clone(&config), Arc::clone(&told), Arc::clone(&over));
                // An error here is a client that has had enough.
                std::thread::spawn(move || {
                    let _ = serve(stream, config, answers, &told, &over);
                });
            }
        });
        Self { port, certificate, heads, is_over }
    }

    fn redfish(&self, trust: RedfishTrust) -> Redfish {
        let credentials = Some(("root".to_owned(), Password::new("hunter2")));
        let address = format!("https://localhost:{}", self.port);
        let mut redfish = Redfish::new(&address, credentials, trust).unwrap();
        redfish.patience = Duration::from_secs(60);
        redfish
    }

    fn read(&self) -> Facts {
        self.redfish(RedfishTrust::All).read()
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes whoever accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn serve(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    answers: Answers,
    heads: &Mutex<Vec<String>>,
    over: &AtomicBool,
) -> std::io::Result<()> {
    let connection = rustls::ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = rustls::StreamOwned::new(connection, stream);
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        heads.lock().unwrap().push(head);
        match answers(&path) {
            Answer::Json(body) => {
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
            }
            Answer::Status(status) => write!(stream, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n")?,
            Answer::Redirect(to) => {
                write!(stream, "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")?;
            }
            Answer::Raw(bytes) => {
                stream.write_all(&bytes)?;
                return stream.flush();
            }
            Answer::Endless => {
                write!(stream, "HTTP/1.1 200 OK\r\n\r\n{{\"Members\": [")?;
                while !over.load(Ordering::Relaxed) {
                    stream.write_all(&[b'1', b','].repeat(4096))?;
                }
                return Ok(());
            }
            Answer::Nothing => {
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                return Ok(());
            }
        }
        stream.flush()?;
    }
}

fn json(body: &str) -> Answer {
    Answer::Json(body.to_owned())
}

/// A rack server as most are: `Thermal` and `Power`, in one resource each.
fn rack_server(path: &str) -> Answer {
    match path {
        "/redfish/v1/Chassis" => json(
            r##"{"@odata.type": "#ChassisCollection.ChassisCollection", "Name": "Chassis Collection",
                "Members@odata.count": 1, "Members": [{"@odata.id": "/redfish/v1/Chassis/1U"}]}"##,
        ),
        "/redfish/v1/Chassis/1U" => json(
            r##"{"@odata.type": "#Chassis.v1_10_0.Chassis", "Id": "1U", "ChassisType": "RackMount",
                "Thermal": {"@odata.id": "/redfish/v1/Chassis/1U/Thermal"},
                "Power": {"@odata.id": "/redfish/v1/Chassis/1U/Power"}}"##,
        ),
        "/redfish/v1/Chassis/1U/Thermal" => json(
            r##"{"@odata.type": "#Thermal.v1_6_0.Thermal", "Id": "Thermal",
                "Temperatures": [
                  {"MemberId": "0", "Name": "CPU1 Temp", "Status": {"State": "Enabled", "Health": "OK"},
                   "ReadingCelsius": 62, "UpperThresholdCritical": 90, "PhysicalContext": "CPU"},
                  {"MemberId": "1", "Name": "CPU2 Temp", "Status": {"State": "Absent"}, "ReadingCelsius": null},
                  {"MemberId": "2", "Name": "Chassis Intake Temp", "Status": {"State": "Enabled", "Health": "OK"},
                   "ReadingCelsius": 25.5}],
                "Fans": [
                  {"MemberId": "0", "Name": "BaseBoard System Fan", "Status": {"State": "Enabled", "Health": "OK"},
                   "Reading": 2100, "ReadingUnits": "RPM", "LowerThresholdFatal": 0},
                  {"MemberId": "1", "Name": "BaseBoard System Fan Backup", "ReadingUnits": "RPM",
                   "Status": {"State": "Enabled", "Health": "Critical"}, "Reading": 0}]}"##,
        ),
        "/redfish/v1/Chassis/1U/Power" => json(
            r##"{"@odata.type": "#Power.v1_6_0.Power", "Id": "Power",
                "PowerControl": [{"MemberId": "0", "Name": "System Power Control", "PowerConsumedWatts": 344,
                   "PowerCapacityWatts": 800, "PowerLimit": {"LimitInWatts": 500, "LimitException": "LogEventOnly"}}],
                "PowerSupplies": [
                  {"MemberId": "0", "Name": "Power Supply Bay 1", "Status": {"State": "Enabled", "Health": "Warning"},
                   "PowerCapacityWatts": 400, "LastPowerOutputWatts": 192},
                  {"MemberId": "1", "Name": "Power Supply Bay 2", "Status": {"State": "Absent"}}]}"##,
        ),
        _ => Answer::Status(404),
    }
}

#[test]
fn a_rack_server_tells_fans_temperatures_and_power() {
    let controller = Controller::start(rack_server);
    let facts = controller.redfish(RedfishTrust::Authorities(vec![controller.certificate.clone()])).read();
    for (key, value) in [
        ("redfish.fan.BaseBoard_System_Fan.rpm", "2100"),
        ("redfish.fan.BaseBoard_System_Fan_Backup.rpm", "0"),
        ("redfish.fan.BaseBoard_System_Fan_Backup.health", "Critical"),
        ("redfish.temperature.CPU1_Temp.c", "62"),
        ("redfish.temperature.Chassis_Intake_Temp.c", "25.5"),
        ("redfish.power.System_Power_Control.watts", "344"),
        ("redfish.power.System_Power_Control.limit_watts", "500"),
        ("redfish.psu.Power_Supply_Bay_1.state", "Enabled, health Warning"),
        ("redfish.psu.Power_Supply_Bay_1.output_watts", "192"),
    ] {
        assert_eq!(facts.text(key), Some(value), "{key}: {facts:?}");
    }
    assert!(!facts.0.contains_key("redfish"), "nothing is missing: {facts:?}");
    assert!(facts.under("redfish.temperature.CPU2").next().is_none(), "what is not plugged in is not told");
    for head in controller.heads() {
        let head = head.to_ascii_lowercase();
        // root:hunter2
        assert!(
            head.starts_with("get /redfish/v1/") && head.contains("authorization: basic cm9vddpodw50zxiy"),
            "{head}"
        );
    }
}

/// A newer one: a resource for each fan and each power supply.
fn newer_server(path: &str) -> Answer {
    match path {
        "/redfish/v1/Chassis" => json(r#"{"Members": [{"@odata.id": "/redfish/v1/Chassis/1"}]}"#),
        "/redfish/v1/Chassis/1" => json(
            r#"{"ThermalSubsystem": {"@odata.id": "/redfish/v1/Chassis/1/ThermalSubsystem"},
                "PowerSubsystem": {"@odata.id": "/redfish/v1/Chassis/1/PowerSubsystem"},
                "Power": {"@odata.id": "/redfish/v1/Chassis/1/Power"},
                "EnvironmentMetrics": {"@odata.id": "/redfish/v1/Chassis/1/EnvironmentMetrics"}}"#,
        ),
        "/redfish/v1/Chassis/1/ThermalSubsystem" => json(
            r#"{"Fans": {"@odata.id": "/redfish/v1/Chassis/1/ThermalSubsystem/Fans"},
                "ThermalMetrics": {"@odata.id": "/redfish/v1/Chassis/1/ThermalSubsystem/ThermalMetrics"}}"#,
        ),
        "/redfish/v1/Chassis/1/ThermalSubsystem/ThermalMetrics" => json(
            r#"{"TemperatureSummaryCelsius": {"Intake": {"Reading": 24.8}, "Exhaust": {"Reading": 40.5}},
                "TemperatureReadingsCelsius": [{"Reading": 44, "DeviceName": "CPU1"}]}"#,
        ),
        "/redfish/v1/Chassis/1/ThermalSubsystem/Fans" => {
            json(r#"{"Members": [{"@odata.id": "/redfish/v1/Chassis/1/ThermalSubsystem/Fans/CPU1"}]}"#)
        }
        "/redfish/v1/Chassis/1/ThermalSubsystem/Fans/CPU1" => json(
            r#"{"Id": "CPU1", "Name": "Fan Bay 1", "Status": {"State": "Enabled", "Health": "OK"},
                "SpeedPercent": {"Reading": 45, "SpeedRPM": 2200}}"#,
        ),
        "/redfish/v1/Chassis/1/PowerSubsystem" => {
            json(r#"{"PowerSupplies": {"@odata.id": "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies"}}"#)
        }
        "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies" => {
            json(r#"{"Members": [{"@odata.id": "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies/Bay1"}]}"#)
        }
        "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies/Bay1" => json(
            r#"{"Id": "Bay1", "Name": "Power Supply Bay 1", "Status": {"State": "Enabled", "Health": "OK"},
                "PowerCapacityWatts": 800,
                "Metrics": {"@odata.id": "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies/Bay1/Metrics"}}"#,
        ),
        "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies/Bay1/Metrics" => {
            json(r#"{"InputPowerWatts": {"Reading": 387.4}, "OutputPowerWatts": {"Reading": 374}}"#)
        }
        "/redfish/v1/Chassis/1/EnvironmentMetrics" => {
            json(r#"{"Name": "Chassis Environment Metrics", "PowerWatts": {"Reading": 374}}"#)
        }
        _ => Answer::Status(404),
    }
}

#[test]
fn a_newer_server_tells_the_same_by_more_resources() {
    let facts = Controller::start(newer_server).read();
    for (key, value) in [
        ("redfish.fan.Fan_Bay_1.rpm", "2200"),
        ("redfish.temperature.CPU1.c", "44"),
        ("redfish.temperature.Intake.c", "24.8"),
        ("redfish.power.Chassis_Environment_Metrics.watts", "374"),
        ("redfish.psu.Power_Supply_Bay_1.state", "Enabled, health OK"),
        ("redfish.psu.Power_Supply_Bay_1.input_watts", "387.4"),
    ] {
        assert_eq!(facts.text(key), Some(value), "{key}: {facts:?}");
    }
    // What it promised and did not tell is said, and the rest is there.
    assert_eq!(why(&facts), "it answers 404 to /redfish/v1/Chassis/1/Power");
    assert!(!facts.0.contains_key("redfish"), "the controller itself was read: {facts:?}");
}

/// Why nothing, or not all, was told.
fn why(facts: &Facts) -> String {
    match facts.0.get("redfish").or_else(|| facts.0.get("redfish.part")) {
        Some(Known::Unavailable(why)) => {
            assert!(!why.chars().any(char::is_control) && !why.contains("hunter2"), "{why:?}");
            why.clone()
        }
        known => panic!("{known:?} in {facts:?}"),
    }
}

#[test]
fn a_controller_without_sensors_is_unknown_and_never_zero() {
    let facts = Controller::start(|_| json(r#"{"Members": []}"#)).read();
    assert!(why(&facts).contains("tells of no fan, temperature or power supply") && facts.0.len() == 1, "{facts:?}");
}

#[test]
fn what_a_controller_refuses_is_said() {
    let facts = Controller::start(|_| Answer::Status(401)).read();
    assert!(why(&facts).contains("does not accept the user or the password"), "{facts:?}");
    let facts = Controller::start(|_| Answer::Status(403)).read();
    assert!(why(&facts).contains("the user may not read"), "{facts:?}");
    let facts = Controller::start(|_| Answer::Status(503)).read();
    assert!(why(&facts).contains("it answers 503"), "{facts:?}");

    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let redfish = Redfish::new(&format!("https://localhost:{nobody}"), None, RedfishTrust::All).unwrap();
    assert!(why(&redfish.read()).contains("refused"), "{:?}", redfish.read());
}

#[test]
fn a_certificate_that_nobody_vouches_for_keeps_the_password_here() {
    let controller = Controller::start(rack_server);
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let facts = controller.redfish(RedfishTrust::Authorities(vec![stranger.cert.der().to_vec()])).read();
    let why = why(&facts);
    assert!(why.contains("certificate cannot be verified") && why.contains("--redfish-insecure"), "{why}");
    assert!(controller.heads().is_empty(), "no request was sent");
}

#[test]
fn a_controller_that_says_nothing_is_given_up() {
    let controller = Controller::start(|_| Answer::Nothing);
    let mut redfish = controller.redfish(RedfishTrust::All);
    redfish.request_timeout = Duration::from_millis(300);
    assert!(why(&redfish.read()).contains("did not answer within 0.3 s"), "{:?}", redfish.read());
}

#[test]
fn a_slow_controller_is_not_waited_for_for_ever() {
    fn slow(path: &str) -> Answer {
        std::thread::sleep(Duration::from_millis(100));
        match path {
            "/redfish/v1/Chassis" => {
                let members: Vec<String> =
                    (0..16).map(|n| format!(r#"{{"@odata.id": "/redfish/v1/Chassis/{n}"}}"#)).collect();
                Answer::Json(format!(r#"{{"Members": [{}]}}"#, members.join(",")))
            }
            _ => json("{}"),
        }
    }
    let controller = Controller::start(slow);
    let mut redfish = controller.redfish(RedfishTrust::All);
    redfish.patience = Duration::from_millis(400);
    let facts = redfish.read();
    assert!(why(&facts).contains("not") && controller.heads().len() < 10, "{facts:?}");
}

#[test]
fn endless_answers_are_cut() {
    let facts = Controller::start(|_| Answer::Endless).read();
    assert!(why(&facts).contains("longer than a Redfish resource"), "{facts:?}");
}

#[test]
fn answers_that_are_none_are_said() {
    for answer in [
        (|_| json("")) as Answers,
        |_| json("[1, 2]"),
        |_| json("{\"Members\": "),
        |_| Answer::Json("[".repeat(500_000)),
        |_| Answer::Json("{\"a\":".repeat(100_000)),
    ] {
        let facts = Controller::start(answer).read();
        assert!(why(&facts).contains("no Redfish resource"), "{facts:?}");
    }
    for answer in [
        (|_| Answer::Raw(b"\x1b[2J no HTTP at all\r\n\r\n".to_vec())) as Answers,
        |_| Answer::Raw([b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'x'; 1 << 20], b"\r\n\r\n{}"].concat()),
        |_| Answer::Raw(Vec::new()),
    ] {
        let facts = Controller::start(answer).read();
        assert!(!why(&facts).is_empty() && facts.0.len() == 1, "{facts:?}");
    }
}

#[test]
fn nobody_else_is_told_the_password() {
    // Its links lead to another host by each way that there is.
    fn strays(path: &str) -> Answer {
        match path {
            "/redfish/v1/Chassis" => json(
                r#"{"Members": [{"@odata.id": "https://evil.example/redfish/v1/Chassis/1"}, {"@odata.id": "//evil.example/"},
                    {"@odata.id": "/redfish/v1/\r\nHost: evil.example"}, {"@odata.id": "/redfish/v1/../x"},
                    {"@odata.id": "@evil.example/redfish/v1/"}, {"@odata.id": "/redfish/v1/Chassis/1"}]}"#,
            ),
            _ => Answer::Redirect("https://evil.example/".to_owned()),
        }
    }
    let controller = Controller::start(strays);
    let facts = controller.read();
    assert!(why(&facts).contains("it answers 302"), "{facts:?}");
    let paths: Vec<String> = controller.heads().iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(paths, ["/redfish/v1/Chassis", "/redfish/v1/Chassis/1"]);
}

#[test]
fn a_maze_of_resources_is_left() {
    fn maze(path: &str) -> Answer {
        let members: Vec<String> = (0..1000).map(|n| format!(r#"{{"@odata.id": "{path}/{n}"}}"#)).collect();
        let own = format!(r#"{{"@odata.id": "{path}"}}"#);
        Answer::Json(format!(
            r#"{{"Members": [{}], "Thermal": {own}, "ThermalSubsystem": {own}, "Fans": {own}, "Power": {own},
               "PowerSubsystem": {own}, "PowerSupplies": {own}, "Metrics": {own}}}"#,
            members.join(",")
        ))
    }
    let controller = Controller::start(maze);
    let facts = controller.read();
    assert!(why(&facts).contains("not read to the end"), "{facts:?}");
    assert!(controller.heads().len() <= 96, "{}", controller.heads().len());
    assert!(facts.0.len() <= 512);
}

//! The ruler by itself, for a look with curl or wrk: `cargo run -p duel-ruler --example serve -- --listen 127.0.0.1:8080`
//! With `--lie NAME` it is a server of the catalogue of those that lie, on a port that it tells; with `--lies` it tells their
//! names. Ends when standard input ends.

use duel_ruler::{child, hostile};
use std::io::Read;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let served = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--lies"] => {
            hostile::catalogue().for_each(|lie| println!("{:44} {}", lie.name, lie.does));
            Ok(())
        }
        ["--lie", name] => lie(name),
        _ => child::ChildConfig::from_args(words)
            .and_then(|config| child::main(config).map_err(|error| error.to_string()))
            .map(|truth| println!("{}", truth.to_json())),
    };
    if let Err(error) = served {
        eprintln!("{error}");
        std::process::exit(2);
    }
}

fn lie(name: &str) -> Result<(), String> {
    let lie = hostile::by_name(name).ok_or_else(|| format!("{name} is not in the catalogue; --lies tells what is"))?;
    let liar = hostile::Liar::start(lie, 0).map_err(|error| error.to_string())?;
    println!("{} {}", liar.url(), lie.asks.join(" "));
    let mut scratch = [0; 256];
    // An error is as final as the end.
    while std::io::stdin().read(&mut scratch).is_ok_and(|read| read > 0) {}
    Ok(())
}

//! The ruler by itself, for a look with curl or wrk: `cargo run -p duel-ruler --example serve -- --listen 127.0.0.1:8080`
//! Ends when standard input ends.

use duel_ruler::child;

fn main() {
    let served = child::ChildConfig::from_args(std::env::args().skip(1))
        .and_then(|config| child::main(config).map_err(|error| error.to_string()));
    match served {
        Ok(truth) => println!("{}", truth.to_json()),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    }
}

//! How often the pages of sysbench's tables are asked for: what a cache of some size holds of them follows from that.

use crate::keys::Keys;
use crate::schema::{CACHE_SIZES, KEYS, OP, SCRIPT, TABLE_SIZE};
use duel_model::{KindPlan, parse_size_bytes};

/// Parts of a table that are told apart by how often they are asked for: of a bell in its middle each of so many has nearly one height.
const EQUAL_PARTS: u32 = 4096;
/// At the hot end parts grow by so much from one to the next, as a power of a place changes by a thirtieth there.
const GROWTH: f64 = 1.04;

/// Sizes that predictions are wanted for, in bytes, rising; none: nobody asked.
///
/// # Errors
///
/// One of them is no size: a sentence for the user.
pub fn cache_sizes(kind: &KindPlan) -> Result<Vec<u64>, String> {
    let typed = kind.get(&CACHE_SIZES);
    if typed == CACHE_SIZES.default {
        return Ok(Vec::new());
    }
    let size = |text: &str| {
        // Words are kept in small letters.
        let typed = text.to_ascii_uppercase().replace("IB", "iB");
        let bytes = parse_size_bytes(&typed).ok().filter(|&bytes| bytes > 0);
        bytes.ok_or_else(|| format!("--{} takes sizes such as 1G,4G; got '{text}'", CACHE_SIZES.name))
    };
    let mut sizes = typed.split('+').map(size).collect::<Result<Vec<_>, _>>()?;
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// Of tables of so many pages together, groups of pages that are asked for equally often: how many pages they are, and the share of
/// all that is asked for that goes to them.
///
/// # Errors
///
/// Why that is not known of this op, in words that a sentence may end with.
pub fn page_shares(kind: &KindPlan, tables: u32, pages: f64) -> Result<Vec<(f64, f64)>, String> {
    if !kind.get(&SCRIPT).is_empty() {
        return Err("of own SQL duel does not know which pages it asks for".to_owned());
    }
    if kind.get(&OP) != "point-select" {
        return Err(format!(
            "which pages {} asks for, and how many, is not modelled; --op point-select asks for one page",
            kind.get(&OP)
        ));
    }
    let rows = kind.get(&TABLE_SIZE).parse().unwrap_or(1);
    let keys = Keys::named(kind.get(&KEYS), rows);
    let each = pages / f64::from(tables.max(1));
    let mut bounds: Vec<f64> = (0..=EQUAL_PARTS).map(|part| f64::from(part) / f64::from(EQUAL_PARTS)).collect();
    let hot = std::iter::successors(Some(1.0 / each.max(1.0)), |place| Some(place * GROWTH));
    bounds.extend(hot.take_while(|place| *place < 1.0));
    bounds.extend(keys.edges());
    bounds.sort_by(f64::total_cmp);
    // No part is smaller than a page.
    bounds.dedup_by(|next, before| (*next - *before) * each < 1.0);
    bounds.pop();
    bounds.push(1.0);
    let groups = bounds.windows(2).map(|ends| {
        ((ends[1] - ends[0]) * pages, (keys.share_below(ends[1], rows) - keys.share_below(ends[0], rows)).max(0.0))
    });
    Ok(groups.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn kind(settings: &[(&str, &str)]) -> KindPlan {
        let mut kind = KindPlan::of(&crate::SCHEMA);
        for (name, value) in settings {
            let param = crate::PARAMS.iter().find(|param| param.name == *name).unwrap();
            kind.settings.insert(param.id(), param.read(value).unwrap());
        }
        kind
    }

    #[test]
    fn shares_of_pages_are_those_of_the_rows_that_are_drawn() {
        const ROWS: u64 = 100_000;
        for name in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
            let plan = kind(&[("keys", name), ("table-size", "100000")]);
            let groups = page_shares(&plan, 1, 1000.0).unwrap();
            let sum: f64 = groups.iter().map(|group| group.1).sum();
            let pages: f64 = groups.iter().map(|group| group.0).sum();
            assert!((sum - 1.0).abs() < 1e-6 && (pages - 1000.0).abs() < 1e-6, "{name}: {sum} {pages}");
            let (keys, mut rng) = (Keys::named(name, ROWS), Pcg64Mcg::seed_from_u64(11));
            let drawn: Vec<f64> =
                (0..100_000).map(|_| keys.draw(&mut rng, 1, ROWS as i64) as f64 / ROWS as f64).collect();
            let (mut place, mut expected) = (0.0, 0.0);
            for (pages, share) in groups {
                (place, expected) = (place + pages / 1000.0, expected + share);
                let seen = drawn.iter().filter(|at| **at <= place).count() as f64 / drawn.len() as f64;
                assert!((seen - expected).abs() < 0.01, "{name} up to {place}: {seen} {expected}");
            }
        }
    }

    #[test]
    fn sizes_are_read_and_what_is_none_is_refused() {
        assert_eq!(cache_sizes(&kind(&[])), Ok(vec![]));
        assert_eq!(cache_sizes(&kind(&[("cache-size", "4G,512m,4GiB,4g")])), Ok(vec![512 << 20, 4 << 30]));
        assert!(cache_sizes(&kind(&[("cache-size", "big")])).is_err());
        assert!(cache_sizes(&kind(&[("cache-size", "0")])).is_err());
        assert_eq!(cache_sizes(&kind(&[("cache-size", "64k+1000kB")])), Ok(vec![65_536, 1_000_000]));
        assert!(page_shares(&kind(&[("op", "read-only")]), 1, 10.0).is_err());
    }
}

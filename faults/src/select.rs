//! Which cases are meant.

use crate::case::Case;
use crate::injections;

/// The cases with these causes, ids or beginnings of ids, in the catalogue's order; all, where none is given.
pub(crate) fn select(ids: &[String]) -> anyhow::Result<Vec<Case>> {
    let cases = injections::cases();
    for id in ids {
        anyhow::ensure!(cases.iter().any(|case| is_meant(case, id)), "there is no case {id}; see `faults list`");
    }
    Ok(cases.into_iter().filter(|case| ids.is_empty() || ids.iter().any(|id| is_meant(case, id))).collect())
}

/// An id may begin with a kind of work, as `web:net.loss` does: causes of several kinds have one name. `web:` alone means all
/// of that kind.
fn is_meant(case: &Case, id: &str) -> bool {
    let id = match id.split_once(':') {
        Some((kind, _)) if kind != case.trial.kind() => return false,
        Some((_, "")) => return true,
        Some((_, id)) => id,
        None => id,
    };
    case.cause() == id || (case.id.starts_with(id) && id.contains('/')) || (id == "double" && case.truth.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Trial;

    #[test]
    fn a_cause_means_its_cases_and_a_beginning_what_begins_so() {
        let count = |id: &str| select(&[id.to_owned()]).map(|cases| cases.len()).ok();
        assert!(count("tls.large-key").unwrap() > 2);
        assert_eq!(count("tls.large-key/nginx-https-612B-c16-anew/"), Some(1));
        assert!(count("double").unwrap() >= 3);
        assert_eq!(count("tls.larg"), None);
        assert_eq!(select(&[]).unwrap().len(), injections::cases().len());
        assert_eq!(count("web:tls.large-key"), count("tls.large-key"));
        assert_eq!((count("tls:"), count("disk:tls.large-key"), count(":tls.large-key")), (None, None, None));
        let kinds: usize = Trial::KINDS.iter().filter_map(|kind| count(&format!("{kind}:"))).sum();
        assert_eq!(kinds, injections::cases().len());
    }
}

//! What is not to leave the machine with a page.
//!
//! Header values that carry secrets are not even archived. But addresses and request bodies are, and both come back in
//! sentences and in the commands that evidence offers; so they are looked for in every text of the page. What servers have
//! said may hold addresses too: there, parameters with telling names are looked for.

use duel_model::{Body, FormValue, Plan, WorkloadPlan, is_secret_name, shell_word, without_secret_parameters};

/// Texts to leave out, each with what stands in its place; the longest first, so that none hides a part of another.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<(String, String)>);

impl Secrets {
    /// The secrets of a plan: values of secret parameters in addresses, and the request's body.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut texts: Vec<(String, String)> =
            plan.targets.iter().flat_map(|target| parameters(&crate::text::clean_whole(&target.address))).collect();
        for factor in &plan.factors {
            let levels = (0..factor.levels()).map(|level| crate::text::clean_whole(&factor.typed(level)));
            texts.extend(levels.flat_map(|level| parameters(&level)));
        }
        if let WorkloadPlan::Http(http) = &plan.workload
            && let Body::Text(body) = &http.body
        {
            let body = crate::text::clean_whole(body);
            // As it stands in commands, and by itself; a single letter by itself is in every word.
            texts.push((format!("--body {}", shell_word(&body)), "--body '[left out]'".to_owned()));
            if body.chars().count() >= 4 {
                texts.push((body, Plan::LEFT_OUT.to_owned()));
            }
        }
        if let WorkloadPlan::Http(http) = &plan.workload {
            for field in http.requests.form.iter().flat_map(|form| &form.fields) {
                if let FormValue::Text(value) = &field.value {
                    let typed = crate::text::clean_whole(&format!("{}={value}", field.name));
                    texts.push((shell_word(&typed), shell_word(&format!("{}=[left out]", field.name))));
                }
            }
        }
        texts.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        Self(texts)
    }

    /// The text without them.
    pub(super) fn left_out(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (secret, replacement) in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), replacement);
            }
        }
        // Whatever a server has said, such as where it redirects to, is known by its names only.
        without_secret_parameters(&text)
    }
}

/// `name=value` of the parameters of an address whose names say that they are secret.
fn parameters(address: &str) -> Vec<(String, String)> {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    query
        .split(['&', ';', '#'])
        .filter_map(|part| Some((part, part.split_once('=')?)))
        .filter(|(_, (name, value))| !value.is_empty() && is_secret_name(name))
        .map(|(part, (name, _))| (part.to_owned(), format!("{name}=[left out]")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_parameters_are_left_out_and_others_stay() {
        let found = parameters("https://a.example/f?id=7&access_token=abc&Signature=x%2Fy#token=z");
        let names: Vec<&str> = found.iter().map(|(part, _)| part.as_str()).collect();
        assert_eq!(names, ["access_token=abc", "Signature=x%2Fy", "token=z"]);
        assert_eq!(parameters("https://a.example/token=abc"), []);
        let secrets = Secrets(found);
        let text = "duel 'A=https://a.example/f?id=7&access_token=abc&Signature=x%2Fy' -c 4";
        let shown = secrets.left_out(text);
        assert!(shown.contains("id=7") && !shown.contains("abc") && !shown.contains("x%2Fy"), "{shown}");
    }
}

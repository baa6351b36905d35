//! Sums of up to three terms, fitted to positive values by relative errors, with no coefficient below 0.

/// Rounds of reweighting. Each brings the relative error of what is fitted down by about its own size, a few percent:
/// ten leave nothing that a double could hold.
const ROUNDS: usize = 10;

/// The coefficients of the columns: those with the least squares of relative errors, 0 or above. `None` where nothing
/// fits, or the rows do not determine it.
///
/// `faces` are the columns that may be above 0 together; a column in none of them stays 0. Weights are one over the
/// variance of a value's logarithm, up to a common factor. Linear least squares with weights `w / fitted²`, reweighted until
/// they stand (the quasi-likelihood of a constant coefficient of variation, Wedderburn 1974). On each face the solution is
/// a linear one, and the best that keeps the bounds is the minimum, since the sum of squares is convex.
pub(crate) fn fit(rows: &[[f64; 3]], seen: &[f64], weights: &[f64], faces: &[&[usize]]) -> Option<[f64; 3]> {
    // Columns of like size, or the normal equations of 10,000 connections lose all digits.
    let largest = |column: usize| rows.iter().map(|row| row[column]).fold(0.0, f64::max);
    let scale = [0, 1, 2].map(largest).map(|largest: f64| if largest > 0.0 { largest } else { 1.0 });
    let rows: Vec<[f64; 3]> = rows.iter().map(|row| std::array::from_fn(|i| row[i] / scale[i])).collect();
    let mut fitted = seen.to_vec();
    let mut best = None;
    for _ in 0..ROUNDS {
        let weights: Vec<f64> = weights.iter().zip(&fitted).map(|(w, y)| w / (y * y)).collect();
        let found = bounded(&rows, seen, &weights, faces)?;
        fitted = rows.iter().map(|row| predicted(row, &found)).collect();
        best = Some(found);
    }
    best.map(|found| std::array::from_fn(|i| found[i] / scale[i]))
}

/// The sum at a row.
pub(crate) fn predicted(row: &[f64; 3], found: &[f64; 3]) -> f64 {
    row.iter().zip(found).map(|(x, coefficient)| x * coefficient).sum()
}

/// The weighted least-squares solution with no coefficient below 0, and none that makes a row 0.
fn bounded(rows: &[[f64; 3]], seen: &[f64], weights: &[f64], faces: &[&[usize]]) -> Option<[f64; 3]> {
    let error = |found: &[f64; 3]| -> f64 {
        let each = rows.iter().zip(seen).zip(weights);
        each.map(|((row, y), w)| w * (y - predicted(row, found)).powi(2)).sum()
    };
    faces
        .iter()
        .filter_map(|free| least_squares(rows, seen, weights, free))
        .filter(|found| found.iter().all(|v| *v >= 0.0) && rows.iter().all(|row| predicted(row, found) > 0.0))
        .min_by(|a, b| error(a).total_cmp(&error(b)))
}

/// The weighted least-squares solution in the columns that are free; the others are 0. `None` where they do not
/// determine it.
fn least_squares(rows: &[[f64; 3]], seen: &[f64], weights: &[f64], free: &[usize]) -> Option<[f64; 3]> {
    let size = free.len();
    // Normal equations, the right-hand side in the last column.
    let mut system = [[0.0; 4]; 3];
    for ((row, y), w) in rows.iter().zip(seen).zip(weights) {
        for (i, &column) in free.iter().enumerate() {
            for (j, &other) in free.iter().enumerate() {
                system[i][j] += w * row[column] * row[other];
            }
            system[i][3] += w * row[column] * y;
        }
    }
    // Gauss-Jordan with pivoting.
    for step in 0..size {
        let pivot = (step..size).max_by(|&a, &b| system[a][step].abs().total_cmp(&system[b][step].abs()))?;
        system.swap(step, pivot);
        let lead = system[step];
        if lead[step] == 0.0 {
            return None;
        }
        for (i, row) in system.iter_mut().enumerate().take(size).filter(|(i, _)| *i != step) {
            debug_assert_ne!(i, step);
            let factor = row[step] / lead[step];
            for (value, pivot_value) in row.iter_mut().zip(lead) {
                *value -= factor * pivot_value;
            }
        }
    }
    let mut found = [0.0; 3];
    for (i, &column) in free.iter().enumerate() {
        found[column] = system[i][3] / system[i][i];
    }
    found.iter().all(|v| v.is_finite()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: &[&[usize]] = &[&[0, 1, 2], &[0, 1], &[0, 2], &[1, 2], &[0], &[1], &[2]];

    proptest! {
        #[test]
        fn exact_values_give_their_coefficients_back(truth: [u16; 3]) {
            prop_assume!(truth.iter().any(|v| *v > 0));
            let truth = truth.map(f64::from);
            // Bytes weigh from 16 to a million, calls from 1 to 64.
            let rows = [[1.0, 1.0, 16.0], [1.0, 64.0, 1024.0], [1.0, 1.0, 1024.0], [1.0, 4.0, 65_536.0], [1.0, 1.0, 1e6]];
            let seen = rows.map(|row| predicted(&row, &truth));
            let found = fit(&rows, &seen, &[1.0; 5], ALL).unwrap();
            let off = rows.iter().zip(seen).map(|(row, seen)| (predicted(row, &found) / seen - 1.0).abs());
            prop_assert!(off.fold(0.0, f64::max) < 1e-6, "{found:?} {truth:?}");
        }
    }
}

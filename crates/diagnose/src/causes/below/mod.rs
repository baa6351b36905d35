//! Causes of servers that lie in a layer below them, and are shown by work of another kind on that layer alone.

causes! {
    slow_reads,
    slow_path,
}

/// Under load the layer below is what all ops wait for only if what they have done there is nearly all of their time.
const BUSY: f64 = 0.85;

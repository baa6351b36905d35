//! Causes of the path between the generator and a target, and of its ends.

// Told beside the gaps, from what clients go through before they are connected.
pub(crate) mod names;

causes! {
    address_family,
    extra_hop,
    path_delay,
    delayed_ack,
    small_mtu,
    loss,
    backlog_overflow,
    rate_cap,
    small_window,
    initcwnd,
    idle_restart,
    congestion_control,
    filter_chain,
    client_limit,
}

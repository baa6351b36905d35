//! Causes of the path between the generator and a target, and of its ends.

// Told beside the gaps, from what clients go through before they are connected.
pub(crate) mod names;

causes! {
    extra_hop::ExtraHop,
    path_delay::PathDelay,
    delayed_ack::DelayedAck,
    small_mtu::SmallMtu,
    loss::Loss,
    backlog_overflow::BacklogOverflow,
    rate_cap::RateCap,
    small_window::SmallWindow,
    initcwnd::Initcwnd,
    filter_chain::FilterChain,
    client_limit::ClientLimit,
}

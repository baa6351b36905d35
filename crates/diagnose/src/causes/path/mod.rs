//! Causes of paths where the network itself is the target: both sides carry the same from the same program to the same program, and
//! what differs is the way, or an end of it. Those that web servers have as well have the same ids.

causes! {
    path_delay,
    small_window,
    small_mtu,
    congestion_control,
    loss,
    rate_cap,
}

//! Causes of HTTP servers.

causes! {
    no_keepalive,
    compression,
    version,
    h2_streams,
    h2_window,
    larger_response,
    few_workers,
    proxy_buffering,
    no_sendfile,
    sync_logging,
    pauses,
    upstream_no_keepalive,
    slow_upstream,
    upstream_workers,
    bad_backend,
}

//! Causes of HTTP servers.

causes! {
    no_keepalive::NoKeepalive,
    compression::Compression,
    version::Version,
    larger_response::LargerResponse,
    few_workers::FewWorkers,
    no_sendfile::NoSendfile,
    sync_logging::SyncLogging,
    pauses::Pauses,
}

//! The filter as the host calls it: the exports of the module.

unsafe extern "C" {
    pub safe fn _initialize();
    pub safe fn proxy_on_memory_allocate(size: usize) -> *mut u8;
    pub safe fn proxy_on_context_create(context: u32, root: u32);
    pub safe fn proxy_on_vm_start(root: u32, configuration_size: usize) -> bool;
    pub safe fn proxy_on_configure(root: u32, configuration_size: usize) -> bool;
    pub safe fn proxy_on_tick(root: u32);
    pub safe fn proxy_on_queue_ready(root: u32, token: u32);
    pub safe fn proxy_on_request_headers(context: u32, count: usize, end: bool) -> u32;
    pub safe fn proxy_on_request_body(context: u32, size: usize, end: bool) -> u32;
    pub safe fn proxy_on_request_trailers(context: u32, count: usize) -> u32;
    pub safe fn proxy_on_response_headers(context: u32, count: usize, end: bool) -> u32;
    pub safe fn proxy_on_response_body(context: u32, size: usize, end: bool) -> u32;
    pub safe fn proxy_on_log(context: u32);
    pub safe fn proxy_on_done(context: u32) -> bool;
    pub safe fn proxy_on_delete(context: u32);
}

/// The callback's return value that lets things go on; the other one, 1, pauses them.
pub const CONTINUE: u32 = 0;

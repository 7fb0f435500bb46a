//! Shared data and shared queues.

use std::sync::Arc;

use super::{Status, bytes, give_found, host, note, text};
use crate::harness::vm;

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_shared_data(
    key: *const u8,
    key_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
    cas: *mut u32,
) -> Status {
    note("proxy_get_shared_data");
    let key = unsafe { text(key, key_size) };
    let found = vm::try_with(|vm| {
        let (value, present) =
            vm.process.data().get(&vm.process.settings.vm_id, &key).ok_or(Status::NotFound)?;
        unsafe { *cas = present };
        Ok(value)
    });
    unsafe { give_found(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_shared_data(
    key: *const u8,
    key_size: usize,
    data: *const u8,
    size: usize,
    cas: u32,
) -> Status {
    note("proxy_set_shared_data");
    let (key, value) = unsafe { (text(key, key_size), bytes(data, size)) };
    host(|vm| vm.process.data().set(&vm.process.settings.vm_id, &key, value, cas))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_register_shared_queue(name: *const u8, size: usize, token: *mut u32) -> Status {
    note("proxy_register_shared_queue");
    let name = unsafe { text(name, size) };
    host(|vm| {
        let (root, inbox) = (vm.root_of(vm.context()), Arc::downgrade(&vm.inbox));
        unsafe { *token = vm.process.queues().register(&vm.process.settings.vm_id, &name, root, inbox) };
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_resolve_shared_queue(
    vm_id: *const u8,
    vm_id_size: usize,
    name: *const u8,
    name_size: usize,
    token: *mut u32,
) -> Status {
    note("proxy_resolve_shared_queue");
    let (vm_id, name) = unsafe { (text(vm_id, vm_id_size), text(name, name_size)) };
    host(|vm| {
        let vm_id = if vm_id.is_empty() { &vm.process.settings.vm_id } else { &vm_id };
        match vm.process.queues().resolve(vm_id, &name) {
            Some(found) => unsafe { *token = found },
            None => return Status::NotFound,
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_dequeue_shared_queue(token: u32, data: *mut *mut u8, size: *mut usize) -> Status {
    note("proxy_dequeue_shared_queue");
    let found = vm::try_with(|vm| vm.process.queues().dequeue(token));
    unsafe { give_found(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_enqueue_shared_queue(token: u32, data: *const u8, size: usize) -> Status {
    note("proxy_enqueue_shared_queue");
    let message = unsafe { bytes(data, size) };
    host(|vm| vm.process.queues().enqueue(token, message))
}

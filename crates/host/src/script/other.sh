# Any other system: said, and the rest goes on.

facts() { section os uname -r; }
find_sockets() { :; }
any_holders() { :; }
same_program() { return 1; }
name_of() { :; }
started() { :; }
boot() { :; }
can_see() { return 1; }
port_state() { :; }
parents() { :; }
alive() { kill -0 "$1" 2>/dev/null; }
sample() { uptime; }
follow_kernel_log() { :; }
kernel_log() { :; }
sockets() { return 1; }
sleeping() { return 1; }

queues() { return 1; }

# Any other system: said, and the rest goes on.

facts() { section os uname -r; }
port_pids() { :; }
port_state() { :; }
parents() { :; }
alive() { kill -0 "$1" 2>/dev/null; }
sample() { uptime; }
follow_kernel_log() { :; }
kernel_log() { :; }
sockets() { return 1; }

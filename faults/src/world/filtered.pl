# Runs a program under filters of system calls that let everything pass, each so many steps long. Each looks at the first
# argument: what a filter lets pass whatever the arguments are, the kernel does not ask it again (since Linux 5.11).
use strict;
use warnings;
use POSIX ();

my ($filters, $steps, @program) = @ARGV;
# The number of seccomp(2), by machine (asm/unistd.h).
my $seccomp = { x86_64 => 317, aarch64 => 277 }->{ (POSIX::uname())[4] } // die "seccomp has no known number here\n";

# struct sock_filter, of linux/filter.h: what is done, two jumps, a constant.
sub step { return pack 'S C C L', @_ }
my ($load_word, $add, $return, $allow) = (0x20, 0x04, 0x06, 0x7fff0000);
my $first_argument = 16;
my $rules = step($load_word, 0, 0, $first_argument) . step($add, 0, 0, 1) x $steps . step($return, 0, 0, $allow);
# struct sock_fprog.
my $filter = pack 'S x6 P', length($rules) / 8, $rules;
for (1 .. $filters) {
    my ($set_filter, $no_flags) = (1, 0);
    syscall($seccomp, $set_filter, $no_flags, $filter) == 0 or die "a filter could not be set: $!\n";
}
exec { $program[0] } @program or die "$program[0]: $!\n";

# Makes the folder of a copy for its owner where only root may make one, runs what keeps the copy, and removes the folder behind it. Nobody but
# root can put another one in its place: that is seen to before.

folder=$1 owner=$2
shift 2
if ! said=$(mkdir -m 700 "$folder" 2>&1 && chown "$owner" "$folder" 2>&1); then
    printf 'failed %s\n' "$said"
    exit 1
fi
# The keeper ends its group, and this comes after it.
trap : TERM
made=1 "$@"
# An owner that is root has removed it already.
gone() { rmdir "$folder" 2>/dev/null || [ ! -e "$folder" ]; }
gone && exit
# It was killed: its second one empties the folder once the copy is not wanted any more, at the end of the life line that all of them have.
# A line for it that is read here is sent again.
cat >/dev/null
tries=0
until gone || [ $((tries += 1)) -gt 60 ]; do sleep 1; done

# Run in a mount namespace of its own: open_way.sh STAGE PATH... -- CLOSED... -- COMMAND...
# Each closed folder is covered by an empty one that everybody may enter, and each path is put back beneath it. Nobody
# outside of this namespace sees any of that, and it ends with the command.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 022
stage=$1
shift
mount -t tmpfs -o mode=0700 backstay "$stage"
kept=0
while [ "$1" != "--" ]; do
    mkdir "$stage/$kept"
    mount --bind -- "$1" "$stage/$kept"
    kept=$((kept + 1))
    eval "path_$kept=\$1"
    shift
done
shift
while [ "$1" != "--" ]; do
    mkdir -p -- "$1"
    mount -t tmpfs -o mode=0755 backstay "$1"
    shift
done
shift
number=0
while [ "$number" -lt "$kept" ]; do
    eval "path=\$path_$((number + 1))"
    mkdir -p -- "$path"
    mount --move "$stage/$number" "$path"
    number=$((number + 1))
done
umount "$stage"
exec "$@"

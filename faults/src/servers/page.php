<?php
// Answers with one file; see php.rs for what it is told.
[$kind, $us] = explode(':', $_SERVER['HANDLER'] . ':0');
if ($kind === 'sleeps') {
    usleep((int) $us);
}
if ($kind === 'burns') {
    $until = hrtime(true) + 1000 * (int) $us;
    while (hrtime(true) < $until);
}
$body = file_get_contents($_SERVER['FILE']);
header('Content-Type: text/html');
header('Content-Length: ' . strlen($body));
echo $body;

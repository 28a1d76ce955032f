"""nsqd in the place of this Broker."""
import os, subprocess

import check


class Nsqd:
    def __init__(self, program, directory, flags=()):
        self.tcp, self.http = check.free_port(None), check.free_port(None)
        os.makedirs(directory)
        self.log = directory + ".log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, "-data-path", directory, "-tcp-address", "127.0.0.1:%d" % self.tcp, "-http-address", "127.0.0.1:%d" % self.http,
                                             "-https-address", "127.0.0.1:%d" % check.free_port(None), "-broadcast-address", "127.0.0.1", *flags],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    wait_ready, get, request, kill, tail, output, terminate = (check.Server.wait_ready, check.Server.get, check.Server.request, check.Server.kill,
                                                               check.Server.tail, check.Server.output, check.Server.terminate)

package org.tampu.internal.bulk;

import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import org.tampu.gateway.GatewayException;
import org.tampu.gateway.Question;

/**
 * The unused passes of a receiver, each for one connection of one process ({@code spec/bulk.md}). The hub asks the rules
 * of its host before it passes the question of a sender on.
 */
public final class Passes {
    private static final long LIFE_NANOS = 60_000_000_000L;
    /** Most unused passes of one principal. Beyond it the oldest is dropped, so one host takes no pass of another. */
    private static final int EACH = 256;
    private static final int LENGTH = 16;

    private record Pass(byte[] token, String to, byte[] process, long made) {
        boolean isOver() {
            return System.nanoTime() - made >= LIFE_NANOS;
        }
    }

    private final SecureRandom random = new SecureRandom();
    private final Deque<Pass> passes = new ArrayDeque<>();
    private boolean needed;

    /** Has each connection need a pass from now on, because hosts prove themselves. */
    public synchronized void need() {
        needed = true;
    }

    /** Returns whether each connection needs a pass. */
    public synchronized boolean areNeeded() {
        return needed;
    }

    /** Answers the question of a sender: its incarnation. */
    public void answer(Question question) throws GatewayException {
        byte[] process = question.octets();
        if (process.length != LENGTH) {
            throw new IllegalArgumentException("the question of a pass is an incarnation of 16 bytes");
        }
        question.part(issue(question.asker(), process));
    }

    synchronized byte[] issue(String to, byte[] process) {
        byte[] token = new byte[LENGTH];
        random.nextBytes(token);
        passes.removeIf(Pass::isOver);
        List<Pass> same = passes.stream().filter(pass -> pass.to.equals(to)).toList();
        if (same.size() >= EACH) {
            passes.remove(same.get(0));
        }
        passes.add(new Pass(token, to, process.clone(), System.nanoTime()));
        return token.clone();
    }

    /** Returns whether this is a pass. Every pass is compared, so the time does not tell where it stands. */
    public synchronized boolean knows(byte[] token) {
        boolean found = false;
        for (Pass pass : passes) {
            found |= MessageDigest.isEqual(pass.token, token);
        }
        return found;
    }

    /** Uses a pass up; returns whether it was this process's. */
    public synchronized boolean take(byte[] token, byte[] process) {
        for (Iterator<Pass> each = passes.iterator(); each.hasNext();) {
            Pass pass = each.next();
            if (MessageDigest.isEqual(pass.token, token)) {
                each.remove();
                return Arrays.equals(pass.process, process) && !pass.isOver();
            }
        }
        return false;
    }
}

package org.tampu.internal.bulk;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class PassesTest {
    private static byte[] process(int number) {
        byte[] process = new byte[16];
        process[0] = (byte) number;
        return process;
    }

    @Test
    void aPassOpensOneConnectionOfItsProcess() {
        Passes passes = new Passes();
        byte[] pass = passes.issue("host:mast", process(1));
        assertTrue(passes.knows(pass));
        assertFalse(passes.knows(new byte[16]));
        assertTrue(passes.take(pass, process(1)));
        assertFalse(passes.take(pass, process(1)), "it is used up");
        byte[] other = passes.issue("host:mast", process(1));
        assertFalse(passes.take(other, process(2)), "it is another process's");
        assertFalse(passes.knows(other));
    }

    @Test
    void aHostThatAsksForManyPassesTakesNoneOfAnother() {
        Passes passes = new Passes();
        byte[] archive = passes.issue("host:archive", process(1));
        byte[] first = passes.issue("host:mast", process(2));
        for (int number = 0; number < 300; number++) {
            passes.issue("host:mast", process(2));
        }
        assertTrue(passes.knows(archive));
        assertFalse(passes.knows(first));
    }
}

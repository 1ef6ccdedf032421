"""Names of processors, from what /proc/cpuinfo says."""

import unittest

import processor

ZEN4 = """processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
model name	: AMD EPYC 9554 64-Core Processor
flags		: fpu sse4_1 avx fma avx2 avx512f

processor	: 1
model name	: another
"""
INTEL = """vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags		: sse4_1 avx2 avx512f amx_tile
"""
ARM = """BogoMIPS	: 50.00
Features	: fp asimd evtstrm
CPU implementer	: 0x41
"""


class Names(unittest.TestCase):
    def test_the_first_processor_counts(self):
        self.assertEqual(processor.name_of(processor.cpu_fields(ZEN4)), "amd-epyc-9554-zen4-avx512")

    def test_family_and_model_where_no_core_is_known(self):
        self.assertEqual(processor.name_of(processor.cpu_fields(INTEL)), "intel-xeon-platinum-8481c-6-143-amx")

    def test_cores_of_one_family(self):
        for family, model, core in [(23, 1, "zen"), (23, 49, "zen2"), (23, 113, "zen2"), (25, 1, "zen3"), (25, 17, "zen4"), (25, 33, "zen3"), (25, 80, "zen3"),
                                    (25, 97, "zen4"), (26, 2, "zen5"), (27, 0, "27-0")]:
            self.assertEqual(processor.core_of({"vendor_id": "AuthenticAMD", "cpu family": str(family), "model": str(model)}), core, (family, model))

    def test_processors_that_do_not_say_who_they_are(self):
        fields = processor.cpu_fields(ARM)
        self.assertEqual((processor.core_of(fields), processor.level_of(fields)), ("", "neon"))
        self.assertTrue(processor.name_of(fields).endswith("-neon"))
        self.assertNotEqual(processor.name_of({}), "")

    def test_a_machine_in_words(self):
        info = {"cpu": "AMD EPYC", "core": "zen3", "level": "avx2", "cores": 2, "system": "Linux 6.18"}
        self.assertEqual(processor.described(info), "AMD EPYC (zen3, avx2), 2 cores, Linux 6.18")


if __name__ == "__main__":
    unittest.main()

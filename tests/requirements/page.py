"""The page: who is let in, what people see and decide there, and what attackers do not."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "page:strangers",
        "design 22; issue People",
        "whom the page does not know reads nothing there; a link is for one person on this machine, and a header is"
        " believed only from the proxy that says its secret",
        in_file(
            "web/test_page.py",
            "test_a_stranger_reads_nothing_and_health_says_nothing_of_runs",
            "test_a_link_lets_one_person_in_and_an_altered_one_nobody",
            "test_a_header_counts_only_from_the_proxy_that_says_its_secret",
            "test_links_are_for_this_machine_only",
        ),
    ),
)

"""The forms in which issuers hand out secrets, as their documents and their public scanning rules describe them.

A form begins with a prefix that nothing else is called by. What follows is matched greedily to the end of its alphabet,
so that a longer token of tomorrow is still taken whole; where the alphabet alone would also match ordinary names, a
length or a digit is asked for.
"""

import re

_WORD = r"[A-Za-z0-9_-]"
_MIXED = rf"(?={_WORD}{{0,60}}[0-9])(?={_WORD}{{0,60}}[A-Za-z])"
"""A digit and a letter soon: identifiers of programs seldom have the one, numbers never the other."""

_TABLE = (
    ("openai_key", "sk-", rf"sk-{_WORD}{{16,}}"),
    ("slack_token", "xox xapp-", r"(?:xox[a-z]|xapp)[.-][A-Za-z0-9.-]{8,}"),
    ("slack_token", "xwfp-", rf"xwfp-{_WORD}{{8,}}"),
    ("github_token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?:gh[a-z]|github_pat)_[A-Za-z0-9_]{16,}"),
    ("gitlab_token", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glwt- glffct-",
     rf"gl[a-z]{{2,6}}-(?:{_WORD}|\.(?={_WORD})){{16,}}"),
    ("gitlab_token", "GR1348941", rf"GR1348941{_WORD}{{16,}}"),
    ("aws_key", "AKIA ASIA ABIA ACCA", r"A[A-Z]{3}[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aws_key", "ABSK", r"ABSK[A-Za-z0-9+/=]{60,}"),
    ("google_key", "AIza ya29. GOCSPX-", r"(?:AIza|ya29\.|GOCSPX-)[A-Za-z0-9_.-]{16,}"),
    ("google_key", "1//0", rf"1//0{_WORD}{{30,}}"),
    ("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ sk_org_",
     r"[a-z]k_[a-z]{3,4}_[A-Za-z0-9_]{8,}"),
    ("stripe_key", "whsec_", r"whsec_[A-Za-z0-9+/=]{8,}"),
    ("twilio_key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("mailgun_key", "key- pubkey-", r"(?:pub)?key-(?=[A-Za-z]*+[0-9])[A-Za-z0-9]{24,}"),
    ("brevo_key", "xkeysib- xsmtpsib-", r"x[a-z]+-[0-9a-f]{32,}(?:-[A-Za-z0-9]+)?"),
    ("resend_key", "re_", r"re_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}"),
    ("npm_token", "npm_", r"npm_[A-Za-z0-9]{20,}"),
    ("pypi_token", "pypi-", rf"pypi-{_MIXED}{_WORD}{{24,}}"),
    ("crates_token", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("rubygems_key", "rubygems_", r"rubygems_[0-9a-f]{32,}"),
    ("docker_token", "dckr_pat_ dckr_oat_", rf"dckr_[a-z]{{3}}_{_WORD}{{16,}}"),
    ("hugging_face_token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{20,}"),
    ("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", r"do[a-z]_v1_[0-9a-f]{32,}"),
    ("shopify_token", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", r"shp[a-z]{2,3}_[A-Za-z0-9]{20,}"),
    ("atlassian_token", "ATATT3 ATCTT3 ATSTT3 ATBB", r"AT[A-Z]{2}[A-Za-z0-9][A-Za-z0-9_=-]{20,}"),
    ("databricks_token", "dapi dkea dose", r"(?:dapi|dkea|dose)[0-9a-f]{32}(?:-[0-9]+)?"),
    ("linear_key", "lin_api_ lin_oauth_ lin_wh_", r"lin_[a-z]+_[A-Za-z0-9]{20,}"),
    ("notion_token", "ntn_", r"ntn_[A-Za-z0-9]{30,}"),
    ("notion_token", "secret_", r"secret_(?=[A-Za-z]*+[0-9])[A-Za-z0-9]{40,}"),
    ("figma_token", "figd_ figo_ figu_ figor_ figoh_", rf"fig[a-z]{{1,3}}_{_MIXED}{_WORD}{{20,}}"),
    ("postman_key", "PMAK- PMAT-", r"PMA[A-Z]-[A-Za-z0-9]{16,}(?:-[A-Za-z0-9]{16,})?"),
    ("grafana_token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{24,}"),
    ("new_relic_key", "NRAK- NRII- NRIQ- NRRA- NRJS- NRAA- NRAL-", rf"NR[A-Z]{{2}}-{_WORD}{{16,}}"),
    ("cloudflare_token", "v1.0-", rf"v1\.0-[0-9a-f]{{16,}}-{_WORD}{{60,}}"),
    ("cloudflare_token", "cfut_ cfat_ cfk_", rf"cf[a-z]{{1,2}}_{_WORD}{{30,}}"),
    ("heroku_key", "HRKU-", rf"HRKU-{_WORD}{{30,}}"),
    ("vault_token", "hvs. hvb. hvr.", rf"hv[a-z]\.{_WORD}{{20,}}"),
    ("doppler_token", "dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit. dp.said. dp.sm.",
     rf"dp\.[a-z]{{2,5}}\.(?:[a-z0-9_-]{{2,35}}\.)?{_WORD}{{30,}}"),
    ("square_token", "sq0atp- sq0csp- sq0idp- sq0idb-", rf"sq0[a-z]{{3}}-{_WORD}{{20,}}"),
    ("square_token", "EAAA", rf"EAAA{_WORD}{{56,}}"),
    ("facebook_token", "EAA", r"EAA[A-Za-z0-9]{80,}"),
    ("planetscale_token", "pscale_tkn_ pscale_pw_ pscale_oauth_", rf"pscale_[a-z]+_(?:{_WORD}|[.=](?={_WORD})){{30,}}"),
    ("pulumi_token", "pul-", r"pul-[0-9a-f]{40}"),
    ("sentry_token", "sntrys_ sntryu_ sntryi_ sntrya_", r"sntry[a-z]_[A-Za-z0-9+/=_-]{30,}"),
    ("dropbox_token", "sl.", rf"sl\.(?:u\.)?{_MIXED}{_WORD}{{120,}}"),
    ("airtable_token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("hubspot_token", "pat-na pat-eu pat-ap", r"pat-[a-z]{2}[0-9]-[0-9a-f-]{36}"),
    ("contentful_token", "CFPAT-", rf"CFPAT-{_WORD}{{40,}}"),
    ("typeform_token", "tfp_", rf"tfp_{_WORD}{{40,}}"),
    ("prefect_key", "pnu_ pnb_", r"pn[a-z]_[A-Za-z0-9]{30,}"),
    ("supabase_key", "sbp_ sb_secret_", rf"sb(?:p|_secret)_{_WORD}{{20,}}"),
    ("vercel_token", "vcp_ vci_ vca_ vcr_ vck_", rf"vc[a-z]_{_MIXED}{_WORD}{{24,}}"),
    ("netlify_token", "nfp_ nfc_ nfo_ nfu_ nfb_", r"nf[a-z]_[A-Za-z0-9]{30,}"),
    ("fly_token", "fo1_ fm1_ fm2_ fm1r_ fm1a_", r"f[om][12][ar]?_[A-Za-z0-9+/=_-]{40,}"),
    ("render_key", "rnd_", r"rnd_[A-Za-z0-9]{28,}"),
    ("replicate_token", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    ("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    ("xai_key", "xai-", r"xai-[A-Za-z0-9]{60,}"),
    ("perplexity_key", "pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    ("fireworks_key", "fw_", r"fw_[A-Za-z0-9]{22,}"),
    ("langsmith_key", "lsv2_pt_ lsv2_sk_ ls__", r"ls(?:v2_[a-z]{2}|_)_[0-9a-f]{32}(?:_[0-9a-f]+)?"),
    ("pinecone_key", "pcsk_", r"pcsk_[A-Za-z0-9_]{40,}"),
    ("nvidia_key", "nvapi-", rf"nvapi-{_WORD}{{40,}}"),
    ("wandb_key", "wandb_v1_", r"wandb_v1_[A-Za-z0-9_]{40,}"),
    ("adobe_secret", "p8e-", r"p8e-[A-Za-z0-9]{30,}"),
    ("alibaba_key", "LTAI", r"LTAI[A-Za-z0-9]{16,}"),
    ("tencent_key", "AKID", r"AKID[A-Za-z0-9]{28,}"),
    ("yandex_key", "AQVN", rf"AQVN{_WORD}{{34,}}"),
    ("yandex_key", "y0_ t1.", rf"(?:y[0-3]_|t1\.){_WORD}{{40,}}(?:\.{_WORD}{{80,}})?"),
    ("clojars_token", "CLOJARS_", r"CLOJARS_[a-z0-9]{50,}"),
    ("circleci_token", "CCIPAT_ CCIPRJ_", r"CCIP[A-Z]{2}_[A-Za-z0-9]{16,}_[0-9a-f]{32,}"),
    ("buildkite_token", "bkua_ bkaj_ bkpt_", r"bk[a-z]{2}_[0-9A-Za-z]{30,}"),
    ("sonar_token", "sqp_ squ_ sqa_ sqb_", r"sq[a-z]_[0-9a-f]{40}"),
    ("snyk_token", "snyk_", rf"snyk_[a-z]+_{_MIXED}{_WORD}{{30,}}"),
    ("artifactory_key", "AKCp", r"AKCp[A-Za-z0-9]{60,}"),
    ("artifactory_key", "cmVmdGtu", r"cmVmdGtu[A-Za-z0-9]{50,}"),
    ("duffel_token", "duffel_live_ duffel_test_", rf"duffel_[a-z]{{4}}_{_WORD}{{40,}}"),
    ("easypost_key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{50,}"),
    ("flutterwave_key", "FLWSECK FLWPUBK", r"FLW[A-Z]{3}K(?:_TEST)?-[0-9a-zA-Z]{12,}(?:-X)?"),
    ("frameio_token", "fio-u-", rf"fio-u-{_WORD}{{60,}}"),
    ("plaid_token", "access-sandbox- access-development- access-production-",
     r"access-[a-z]+-[0-9a-f]{8}-[0-9a-f-]{27}"),
    ("braintree_token", "access_token$", r"access_token\$[a-z]+\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("razorpay_key", "rzp_live_ rzp_test_", r"rzp_[a-z]{4}_[A-Za-z0-9]{14,}"),
    ("shippo_token", "shippo_live_ shippo_test_", r"shippo_[a-z]{4}_[0-9a-f]{40}"),
    ("tailscale_key", "tskey-", rf"tskey-[a-z]+-{_WORD}{{16,}}"),
    ("twitter_token", "AAAAAAAAAAAAAAAAAAAA", r"A{20}[A-Za-z0-9%]{40,}"),
    ("infracost_key", "ico-", r"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("readme_key", "rdme_", r"rdme_[a-z0-9]{60,}"),
    ("onepassword_token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=_-]{60,}"),
    ("onepassword_key", "A3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("age_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("dynatrace_token", "dt0c01. dt0s01. dt0s16.", r"dt0[cs][0-9]{2}\.[A-Z0-9]{16,}(?:\.[A-Z0-9]{40,})?"),
    ("octopus_key", "API-", r"API-[A-Z0-9]{26}(?![A-Za-z0-9])"),
    ("openshift_token", "sha256~", rf"sha256~{_WORD}{{43}}"),
    ("nuget_key", "oy2", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("sourcegraph_token", "sgp_", r"sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    ("mapbox_token", "sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{30,}\.[A-Za-z0-9_-]{16,}"),
    ("elevenlabs_key", "sk_", r"sk_[0-9a-f]{40,}(?![A-Za-z0-9])"),
    ("asana_token", "1/ 2/", r"[12]/[0-9]{10,}(?:/[0-9]{10,})?:[0-9a-f]{32}"),
    ("clickhouse_key", "4b1d", r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("definednet_key", "dnkey-", rf"dnkey-{_WORD}{{26,}}"),
    ("harness_token", "pat.", rf"pat\.{_WORD}{{22}}\.[0-9a-f]{{24}}\.[A-Za-z0-9]{{20}}"),
    ("scalingo_token", "tk-us-", rf"tk-us-{_WORD}{{40,}}"),
    ("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+){0,3}"),
)  # fmt: skip

_TELLING = ("_", "-", ".", "/", "$", "~")


def _sign_of(prefix: str) -> str:
    return next((sign for sign in _TELLING if sign in prefix), "")


FORMS = tuple(
    (
        sign,
        tuple(
            (prefix, kind, re.compile(pattern))
            for kind, prefixes, pattern in _TABLE
            for prefix in prefixes.split()
            if _sign_of(prefix) == sign
        ),
    )
    for sign in (*_TELLING, "")
)
"""By a sign that all their prefixes hold: prefix, kind and form of tokens.

Looking for the sign first, and for the prefix before the form, is what makes short and long texts cheap.
"""

INFIXES = tuple(
    (kind, re.compile(infix), re.compile(rf"(?<![\w~.-]){pattern}(?![\w-])"))
    for kind, infix, pattern in (
        ("telegram_token", r":AA", r"[0-9]{8,10}:AA[\w-]{32,}+"),
        ("azure_secret", r"Q~", r"[\w~.-]{3}[0-9]Q~[\w~.-]{31,36}"),
        ("terraform_token", r"\.atlasv1\.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}+"),
        ("mailchimp_key", r"-us[0-9]", r"[0-9a-f]{32}-us[0-9]{1,2}"),
        ("mailgun_key", r"-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}"),
        ("discord_token", r"\.[\w-]{6}\.", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}"),
        ("new_relic_key", r"NRAL", r"[0-9a-f]{32,36}(?:FFFF)?NRAL"),
        ("azure_devops_token", r"AZDO", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    )
)
"""Kind, a part that is looked for first because it is rare, and the form of tokens that begin with nothing special."""
